"""A stand-in for `langchain_core.callbacks`: names for type hints. Nobody listens here."""

from __future__ import annotations

from typing import Any


class CallbackManagerForToolRun:
    """What a tool is given to tell about itself."""

    def get_child(self, tag: Any = None) -> CallbackManagerForToolRun:
        return self

    def on_text(self, text: str, **more: Any) -> None:
        """Takes a text, and keeps nothing."""


class AsyncCallbackManagerForToolRun(CallbackManagerForToolRun):
    """The same for async tools."""


Callbacks = Any
BaseCallbackHandler = object
BaseCallbackManager = object
