# hints
from typing import Any, Callable, Optional, get_type_hints

def go(x: Optional[int], f: Callable[..., Any]) -> "list[int]":
    return list(get_type_hints(f))
