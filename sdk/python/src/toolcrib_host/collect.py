"""Finds the tools of a loaded file, describes them, and says what is wrong with the others."""

from __future__ import annotations

import re
import sys

from toolcrib import decorator, signature
from toolcrib.plain import NoJson, plain

from .failure import message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Optional

    from toolcrib.decorator import Declaration

    from .failure import Sources

# How many calls run side by side, where no tool of the file says less.
CONCURRENCY = 16
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Entry:
    """One tool that can be called."""

    __slots__ = ("asynchronous", "bind", "concurrency", "fields", "finish", "function", "init", "wants_context")

    def __init__(
        self,
        fields: dict[str, Any],
        function: Callable[..., Any],
        bind: Callable[[dict[str, Any], Any], tuple[Any, Any]],
        asynchronous: bool,
        wants_context: bool,
    ) -> None:
        #: Its description, as `initialize` gives it.
        self.fields = fields
        self.function = function
        #: Makes the function's arguments from JSON's, and the context.
        self.bind = bind
        self.asynchronous = asynchronous
        self.wants_context = wants_context
        #: How many of its calls may run at once.
        self.concurrency = CONCURRENCY
        #: What its `init` gave for `ctx.init`.
        self.init: dict[str, Any] = {}
        #: What is still to be done with a result, where something is.
        self.finish: Optional[Callable[[Any], Any]] = None


class Start:
    """What an `init` gets."""

    def __init__(self, directory: str) -> None:
        #: The project's folder.
        self.directory = directory


class Collection:
    """The tools of one file, and its problems."""

    def __init__(self, sources: Sources, wait: Callable[[Any], Any]) -> None:
        self.sources = sources
        self.wait = wait
        self.entries: dict[str, Entry] = {}
        self.problems: list[dict[str, Any]] = []

    def problem(
        self,
        name: str,
        message: str,
        hint: str,
        line: int,
        kind: str = "ValidationError",
        severity: str = "error",
    ) -> None:
        found: dict[str, Any] = {"errorType": kind, "severity": severity, "message": message, "hint": hint}
        if name:
            found["toolName"] = name
        if line:
            found["line"] = line
        self.problems.append(found)

    def add(self, entry: Entry, line: int) -> None:
        """Adds a tool, unless something about it is wrong."""
        name, fields = entry.fields["name"], entry.fields
        if not NAME.fullmatch(name):
            hint = "give it another: @tool(name=…), with 1 to 64 letters, digits, _ or -"
            return self.problem(name, f"{name!r} is no name for a tool", hint, line)
        if name in self.entries:
            first = self.entries[name].fields.get("line")
            where = f" in line {first}" if first else ""
            hint = "give one of the two another name: @tool(name=…)"
            return self.problem(name, f"there is a tool named {name!r} already{where}", hint, line, "NameClash")
        if not str(fields.get("description") or "").strip():
            hint = "write a docstring: one sentence that says what the tool does; agents choose by it"
            return self.problem(name, f"the tool {name!r} has no description", hint, line)
        if line:
            fields["line"] = line
        try:
            entry.fields = plain(fields)
        except (NoJson, RecursionError) as error:
            return self.problem(name, f"the options of {name!r}: {error}", "use plain values in its options", line)
        self.entries[name] = entry
        return None

    def declared(self, declarations: list[Declaration], module: ModuleType) -> None:
        """Tools made with our decorator."""
        outermost: dict[int, Any] = {}
        for value in vars(module).values():
            declaration = getattr(value, "__toolcrib__", None)
            if type(declaration) is decorator.Declaration:
                outermost[id(declaration)] = value
        for declaration in declarations:
            if declaration.module != module.__name__:
                continue
            outer = outermost.get(id(declaration))
            if outer is None and not declaration.top:
                continue  # made in a function, and kept nowhere
            function = declaration.function if outer is None else outer
            self.declaration(declaration, function)

    def declaration(self, declaration: Declaration, function: Any) -> None:
        name = declaration.name
        line = self.line_of(declaration.function, declaration.line)
        if declaration.fault is not None:
            return self.problem(name, declaration.fault, "see the options of @tool in the Python guide", line)
        try:
            found = signature.read(function)
        except (TypeError, ValueError, NameError) as error:
            return self.problem(name, f"the signature of {name!r} can't be read: {error}", "decorate a function", line)
        entry = Entry({}, function, found.bind, found.asynchronous, found.context is not None)
        fields: dict[str, Any] = {"name": name, "description": found.summary, "inputSchema": found.schema}
        if found.output is not None:
            fields["outputSchema"] = found.output
        if found.by_pydantic:
            fields["checksArguments"] = found.by_pydantic
        fields.update(declaration.fields)
        if declaration.init is not None:
            fields["dynamic"] = True
            if not self.started(declaration, entry, fields, line):
                return None
        if isinstance(fields.get("outputSchema"), type):
            fields["outputSchema"] = class_schema(fields["outputSchema"])
        given = fields["inputSchema"] is not found.schema
        for severity, message in found.problems:
            if severity == "error" or not given:
                self.problem(name, f"{name}: {message}", hint_for(message), line, severity=severity)
        if any(severity == "error" for severity, _ in found.problems):
            return None
        entry.concurrency = min(CONCURRENCY, fields.pop("concurrency", CONCURRENCY))
        entry.fields = fields
        return self.add(entry, line)

    def started(self, declaration: Declaration, entry: Entry, fields: dict[str, Any], line: int) -> bool:
        """Calls the tool's `init`, and takes over what it gives."""
        assert declaration.init is not None
        name = declaration.name
        try:
            code = getattr(declaration.init, "__code__", None)
            takes_none = code is not None and code.co_argcount == 0 and not code.co_flags & signature.VARARGS
            sys.dont_write_bytecode = True  # from here on it is the user's code that imports
            given = declaration.init() if takes_none else declaration.init(Start(self.sources.directory.rstrip("/")))
            if hasattr(given, "__await__"):
                given = self.wait(given)
            if given is not None and not isinstance(given, dict):
                raise TypeError(f"init gives a dict or None, not {type(given).__name__}")
            for key, value in (given or {}).items():
                if key == "input_schema":
                    fields["inputSchema"] = class_schema(decorator.check(key, value))
                elif key in decorator.OPTIONS and key not in ("name", "init"):
                    decorator.put(fields, key, value)
                else:
                    entry.init[key] = value
        except BaseException as error:
            words = message_of(error)
            self.problem(name, f"the init of {name!r} failed: {words}", "fix the function that init names", line)
            return False
        return True

    def line_of(self, function: Any, otherwise: int) -> int:
        """The line with the function's `def`, where it stands in this file."""
        code = getattr(signature.inner_function(function), "__code__", None)
        if code is None or code.co_filename != self.sources.file:
            return otherwise
        lines = self.sources.texts[self.sources.file].split("\n")
        wanted = re.compile(rf"\s*(async\s+)?def\s+{re.escape(code.co_name)}\b")
        first: int = code.co_firstlineno
        for number in range(first, min(first + 200, len(lines) + 1)):
            if wanted.match(lines[number - 1]):
                return number
        return first


def hint_for(message: str) -> str:
    if "it yields" in message:
        return "gather what it yields in a list, and return that"
    if "has no type" in message:
        return "write its type, so that agents know what to give"
    if "default" in message:
        return "change the default or the type"
    if "has no JSON form" in message:
        return "use a type that JSON has: str, int, list, dict, a dataclass, …"
    return "change the parameter"


def class_schema(schema: Any) -> Any:
    """The schema of a class that was given in place of one."""
    if not isinstance(schema, type):
        return schema
    from toolcrib.schema import Shapes

    shapes = Shapes(vars(sys.modules[schema.__module__]), output=True)
    return signature.top(shapes.definitions.settle(shapes.shape(schema).schema)) or {"type": "object"}


def collect(
    module: ModuleType, declarations: list[Declaration], sources: Sources, wait: Callable[[Any], Any]
) -> Collection:
    """The tools of a loaded module."""
    collection = Collection(sources, wait)
    collection.declared(declarations, module)
    if "langchain_core.tools" in sys.modules:
        from .adopted import adopt

        adopt(collection, module)
    return collection
