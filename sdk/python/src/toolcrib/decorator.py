"""The decorator `tool`, and the options it takes."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Callable, Optional, TypeVar, Union, overload

    Function = TypeVar("Function", bound=Callable[..., Any])

# How an option of the decorator is called in the tool's description.
ANNOTATIONS = {
    "title": "title",
    "read_only": "readOnlyHint",
    "idempotent": "idempotentHint",
    "destructive": "destructiveHint",
    "open_world": "openWorldHint",
}
FIELDS = {
    "name": "name",
    "description": "description",
    "version": "version",
    "tags": "tags",
    "aliases": "aliases",
    "metadata": "metadata",
    "icons": "icons",
    "meta": "_meta",
    "timeout_ms": "timeoutMs",
    "concurrency": "concurrency",
    "env": "env",
    "output_schema": "outputSchema",
    "permissions": "permissions",
    "sandbox": "sandbox",
}
OPTIONS = (*FIELDS, *ANNOTATIONS, "init")

PERMISSIONS = {
    "can_read_files": "canReadFiles",
    "can_write_files": "canWriteFiles",
    "can_network": "canNetwork",
    "can_execute_commands": "canExecuteCommands",
    "allowed_environment_vars": "allowedEnvironmentVars",
    "required": "required",
}
SANDBOX = {
    "allowed_paths": "allowedPaths",
    "allow_network": "allowNetwork",
    "allowed_hosts": "allowedHosts",
    "max_memory_mb": "maxMemoryMB",
    "max_cpu_percent": "maxCpuPercent",
    "max_execution_ms": "maxExecutionMs",
}


class Declaration:
    """One use of the decorator: the function, and what was said about it."""

    __slots__ = ("fault", "fields", "function", "init", "line", "module", "name", "top")

    def __init__(self, function: Any, module: str, line: int, top: bool) -> None:
        self.function = function
        self.module = module
        self.line = line
        #: Whether it stands at the top of its module, not in a function.
        self.top = top
        self.fields: dict[str, Any] = {}
        self.init: Optional[Callable[..., Any]] = None
        #: What is wrong with the options, where something is.
        self.fault: Optional[str] = None
        self.name = str(getattr(function, "__name__", ""))


# While a file is loaded, its declarations in order; otherwise none are kept.
declared: Optional[list[Declaration]] = None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, where a known word is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_texts(option: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{option} is a list of strings, not {value!r}")
    if not all(isinstance(text, str) for text in value):
        raise TypeError(f"{option} is a list of strings; one of them is none")
    return sorted(value) if isinstance(value, (set, frozenset)) else list(value)


def check_keys(option: str, value: Any, known: dict[str, str]) -> dict[str, Any]:
    """Keys in snake_case or camelCase; given out in camelCase."""
    if not isinstance(value, dict):
        raise TypeError(f"{option} is a dict, not {value!r}")
    found = {}
    for key, part in value.items():
        if key in known:
            key = known[key]
        elif key not in known.values():
            near = did_you_mean(str(key), known)
            raise TypeError(f"{option} has no key {key!r}{near or ': it takes ' + ', '.join(known)}")
        found[key] = list(part) if isinstance(part, (tuple, set, frozenset)) else part
    return found


def check(option: str, value: Any) -> Any:
    """The value of an option as it is described; TypeError says what is wrong with it."""
    if option in ("tags", "aliases"):
        return check_texts(option, value)
    if option == "permissions":
        return check_keys(option, value, PERMISSIONS)
    if option == "sandbox":
        return check_keys(option, value, SANDBOX)
    if option in ("metadata", "meta"):
        if not isinstance(value, dict):
            raise TypeError(f"{option} is a dict, not {value!r}")
        return value
    if option == "icons":
        icons = list(value) if isinstance(value, (list, tuple)) else None
        if icons is None or not all(isinstance(icon, dict) and isinstance(icon.get("src"), str) for icon in icons):
            raise TypeError(f"icons is a list of dicts, each with a string 'src', not {value!r}")
        return icons
    if option == "timeout_ms":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise TypeError(f"timeout_ms is a number of milliseconds above 0, not {value!r}")
        return int(value)
    if option == "env":
        if not isinstance(value, dict):
            raise TypeError(f"env is a dict of variables, not {value!r}")
        if not all(isinstance(name, str) and isinstance(text, str) for name, text in value.items()):
            raise TypeError("env is a dict of strings, such as {'TOKEN': 'secret://tickets'}")
        return value
    if option == "concurrency":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise TypeError(f"concurrency is a number of calls, 1 or more, not {value!r}")
        return value
    if option in ("output_schema", "input_schema"):
        if not isinstance(value, (dict, type)):
            raise TypeError(f"{option} is a JSON Schema (a dict) or a class, not {value!r}")
        return value
    if option == "init":
        if not callable(value):
            raise TypeError(f"init is a function, not {value!r}")
        return value
    if option in ANNOTATIONS and option != "title":
        if not isinstance(value, bool):
            raise TypeError(f"{option} is True or False, not {value!r}")
        return value
    if not isinstance(value, str):
        raise TypeError(f"{option} is a string, not {value!r}")
    return value


def put(fields: dict[str, Any], option: str, value: Any) -> None:
    """Puts a checked option where the tool's description has it."""
    value = check(option, value)
    if option in ANNOTATIONS:
        fields["annotations"] = {**fields.get("annotations", {}), ANNOTATIONS[option]: value}
    else:
        fields[FIELDS.get(option, option)] = value


def declare(function: Any, options: dict[str, Any]) -> None:
    """Notes a declaration; the caller's caller is where the decorator stands."""
    frame = sys._getframe(2)
    declaration = Declaration(
        function,
        frame.f_globals.get("__name__", ""),
        frame.f_lineno,
        frame.f_code.co_name == "<module>",
    )
    try:
        if not callable(function):
            raise TypeError(f"@tool decorates a function, not {function!r}")
        for option, value in options.items():
            if option not in OPTIONS:
                near = did_you_mean(option, OPTIONS)
                raise TypeError(f"@tool has no option {option!r}{near or ': it takes ' + ', '.join(OPTIONS)}")
            if value is None:
                continue
            if option == "init":
                declaration.init = check(option, value)
            else:
                put(declaration.fields, option, value)
        declaration.name = declaration.fields.get("name", declaration.name)
        if not declaration.name:
            raise TypeError("this has no name of its own: write @tool(name=…)")
    except TypeError as error:
        # One bad tool must not hide its neighbours in the file, so while a file is loaded it is told, not raised.
        if declared is None:
            raise
        declaration.fault = str(error)
    if declared is not None:
        declared.append(declaration)
        try:
            function.__toolcrib__ = declaration
        except (AttributeError, TypeError):
            pass  # a bound method, or another thing that takes no attributes


if TYPE_CHECKING:

    @overload
    def tool(function: Function, /) -> Function: ...

    @overload
    def tool(
        name_: Optional[str] = None,
        /,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        title: Optional[str] = None,
        read_only: Optional[bool] = None,
        idempotent: Optional[bool] = None,
        destructive: Optional[bool] = None,
        open_world: Optional[bool] = None,
        timeout_ms: Optional[int] = None,
        concurrency: Optional[int] = None,
        env: Optional[dict[str, str]] = None,
        tags: Optional[Iterable[str]] = None,
        aliases: Optional[Iterable[str]] = None,
        metadata: Optional[dict[str, Any]] = None,
        icons: Optional[Iterable[dict[str, Any]]] = None,
        meta: Optional[dict[str, Any]] = None,
        version: Optional[str] = None,
        output_schema: Optional[Union[dict[str, Any], type]] = None,
        permissions: Optional[dict[str, Any]] = None,
        sandbox: Optional[dict[str, Any]] = None,
        init: Optional[Callable[..., Any]] = None,
    ) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a function a tool: `@tool`, `@tool("name")` or `@tool(read_only=True, …)`.

    The function stays what it was and can be called as before. Its name, docstring and type hints say what
    agents see; the options add to that.
    """
    if isinstance(function, str):
        options.setdefault("name", function)
        function = None
    if function is not None:
        declare(function, options)
        return function

    def decorate(function: Any) -> Any:
        declare(function, options)
        return function

    return decorate
