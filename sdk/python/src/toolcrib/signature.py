"""Reads a function: its schema, how its arguments are converted, and what is wrong with it."""

from __future__ import annotations

import types

from . import convert as to
from .context import Context
from .plain import NoJson, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .schema import Shapes

# The plainest types are known here, so that most files need no `typing`.
PLAINEST: dict[Any, tuple[dict[str, Any], Optional[to.Convert]]] = {
    str: ({"type": "string"}, to.to_text),
    int: ({"type": "integer"}, to.to_integer),
    float: ({"type": "number"}, to.to_number),
    bool: ({"type": "boolean"}, to.to_boolean),
    list: ({"type": "array", "items": {}}, to.to_list),
    dict: ({"type": "object", "additionalProperties": True}, to.to_dict),
}
BY_WORD: dict[str, Any] = {kind.__name__: kind for kind in PLAINEST}

# Flags of a code object, as `inspect` has them.
VARARGS, VARKEYWORDS, GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200

NOTHING = object()


class Parameter:
    """One parameter as it is written."""

    __slots__ = ("default", "hint", "kind", "name")

    def __init__(self, name: str, kind: str, default: Any, hint: Any) -> None:
        self.name = name
        #: `positional`, `named`, `rest` (*args) or `keywords` (**kwargs).
        self.kind = kind
        self.default = default
        self.hint = hint


class Signature:
    """What a function takes, and how it is called with JSON arguments."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.schema: dict[str, Any] = {}
        self.output: Optional[dict[str, Any]] = None
        self.summary = ""
        #: What is wrong: severity and message.
        self.problems: list[tuple[str, str]] = []
        self.converts: dict[str, Optional[to.Convert]] = {}
        self.required: tuple[str, ...] = ()
        self.positional: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}
        #: Values for parameters that are not given, where the function's own default is a note of pydantic's.
        self.fills: dict[str, Any] = {}
        #: Parameters whose values pydantic takes or refuses, which may take more than their schema says.
        self.by_pydantic: list[str] = []
        self.context: Optional[str] = None
        self.takes_more = False
        self.convert_more: Optional[to.Convert] = None
        self.flags = flags_of(function)

    @property
    def asynchronous(self) -> bool:
        return bool(self.flags & COROUTINE)

    def bind(self, given: dict[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for the function; `Mismatch` says which one does not fit."""
        named: dict[str, Any] = {}
        name = ""
        converts = self.converts
        try:
            for name, value in given.items():
                if name in converts:
                    convert = converts[name]
                elif self.takes_more:
                    convert = self.convert_more
                else:
                    from .decorator import did_you_mean

                    raise to.Mismatch("there is no such parameter" + did_you_mean(name, converts))
                named[name] = value if convert is None else convert(value)
        except to.Mismatch as mismatch:
            raise mismatch.under(name) from None
        for name in self.required:
            if name not in named:
                raise to.Mismatch("it is missing").under(name)
        if self.fills:
            named = {**self.fills, **named}
        if self.context is not None:
            named[self.context] = context
        if not self.positional:
            return [], named
        return [named.pop(name) if name in named else self.defaults[name] for name in self.positional], named


def inner_function(function: Any) -> Any:
    """What a wrapper or a partial is about."""
    for _ in range(50):
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif type(function).__name__ == "partial" and hasattr(function, "func"):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            break
    return function


def flags_of(function: Any) -> int:
    """The flags of the function's code; of its `__call__` where it is an object."""
    for candidate in (function, inner_function(function)):
        if not hasattr(candidate, "__code__"):
            candidate = getattr(type(candidate), "__call__", None)
        code = getattr(candidate, "__code__", None)
        if code is not None and code.co_flags & (COROUTINE | GENERATOR | ASYNC_GENERATOR):
            return int(code.co_flags)
    return 0


def parameters_of(function: Any) -> tuple[list[Parameter], Any, dict[str, Any]]:
    """Parameters, the hint of the result, and the names that hints may use."""
    inner = inner_function(function)
    scope = getattr(inner, "__globals__", None) or {}
    if type(function) is types.FunctionType and inner is function and not hasattr(function, "__signature__"):
        return plain_parameters(function), annotations_of(function).get("return", NOTHING), scope
    import inspect

    signature = inspect.signature(function)
    kinds: dict[Any, str] = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.VAR_POSITIONAL: "rest",
        inspect.Parameter.VAR_KEYWORD: "keywords",
    }

    def or_nothing(value: Any) -> Any:
        return NOTHING if value is inspect.Parameter.empty else value

    found = [
        Parameter(part.name, kinds.get(part.kind, "named"), or_nothing(part.default), or_nothing(part.annotation))
        for part in signature.parameters.values()
    ]
    return found, or_nothing(signature.return_annotation), scope


def annotations_of(function: Any) -> dict[str, Any]:
    try:
        return dict(function.__annotations__)
    except NameError:
        # Python 3.14 works hints out only now; those it can't are given as references.
        from importlib import import_module

        library = import_module("annotationlib")
        return dict(library.get_annotations(function, format=library.Format.FORWARDREF))


def plain_parameters(function: Any) -> list[Parameter]:
    """The parameters of a plain function, straight from its code: `inspect` is slow to import."""
    code = function.__code__
    hints = annotations_of(function)
    names = code.co_varnames
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    found = []
    for number, name in enumerate(names[:count]):
        place = number - (count - len(defaults))
        kind = "positional" if number < code.co_posonlyargcount else "named"
        found.append(Parameter(name, kind, defaults[place] if place >= 0 else NOTHING, hints.get(name, NOTHING)))
    named_defaults = function.__kwdefaults__ or {}
    found += [
        Parameter(name, "named", named_defaults.get(name, NOTHING), hints.get(name, NOTHING))
        for name in names[count : count + keywords]
    ]
    after = count + keywords
    if code.co_flags & VARARGS:
        found.append(Parameter(names[after], "rest", NOTHING, hints.get(names[after], NOTHING)))
        after += 1
    if code.co_flags & VARKEYWORDS:
        found.append(Parameter(names[after], "keywords", NOTHING, hints.get(names[after], NOTHING)))
    return found


def is_context(parameter: Parameter) -> bool:
    """Whether a parameter gets the context: by its name, or by its type, also quoted or optional."""
    hint = parameter.hint
    if parameter.name == "ctx" or hint is Context:
        return True
    if isinstance(hint, str):
        words = hint.replace("Optional[", "").replace("]", "").replace("None", "").replace("|", " ").split()
        return [word.rpartition(".")[2] for word in words] == ["Context"]
    return Context in getattr(hint, "__args__", ()) and type(None) in hint.__args__


class Reading:
    """Makes the signature of one function."""

    def __init__(self, function: Any) -> None:
        self.found = Signature(function)
        self.shapes: Optional[Shapes] = None
        self.scope: dict[str, Any] = {}
        self.texts: dict[str, str] = {}

    def problem(self, severity: str, message: str) -> None:
        self.found.problems.append((severity, message))

    def read(self) -> Signature:
        found = self.found
        found.summary, self.texts = document(inner_function(found.function))
        parameters, result, self.scope = parameters_of(found.function)
        if found.flags & (GENERATOR | ASYNC_GENERATOR):
            self.problem("error", "it yields; a tool returns one value, and tells how far it is with ctx.progress(…)")
        properties: dict[str, Any] = {}
        required = []
        for parameter in parameters:
            name = parameter.name
            if parameter.kind == "rest":
                self.problem("error", f"*{name} can't be given by name; take a list: {name}: list[…]")
            elif parameter.kind == "keywords":
                found.takes_more = True
                if parameter.hint is not NOTHING:
                    found.convert_more = self.shape(parameter)[1]
            elif found.context is None and is_context(parameter):
                found.context = name
                if parameter.kind == "positional":
                    found.positional += (name,)
            else:
                properties[name] = self.property(parameter)
                if parameter.default is NOTHING:
                    required.append(name)
                if parameter.kind == "positional":
                    found.positional += (name,)
        found.required = tuple(required)
        self.finish(properties, required)
        if result is not NOTHING and result not in (None, "None", *PLAINEST, *BY_WORD):
            found.output = self.result(result)
        return found

    def finish(self, properties: dict[str, Any], required: list[str]) -> None:
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = self.found.takes_more
        self.found.schema = schema if self.shapes is None else self.shapes.definitions.settle(schema)

    def property(self, parameter: Parameter) -> dict[str, Any]:
        """The schema of one parameter; its conversion and default are noted on the way."""
        name = parameter.name
        schema: dict[str, Any] = {}
        convert: Optional[to.Convert] = None
        if type(parameter.default).__name__ == "FieldInfo":
            unpack_field(parameter)
            if parameter.default is not NOTHING:
                self.found.fills[name] = parameter.default
        if parameter.hint is NOTHING:
            self.problem(
                "warning",
                f"parameter `{name}` has no type, so it takes any value; write `{name}: str` or the like",
            )
        else:
            schema, convert = self.shape(parameter)
        schema = dict(schema)
        if name in self.texts and "description" not in schema:
            schema["description"] = self.texts[name]
        self.found.converts[name] = convert
        if to.is_pydantic(convert):
            self.found.by_pydantic.append(name)
        if parameter.default is not NOTHING:
            self.found.defaults[name] = parameter.default
            schema = self.with_default(parameter, schema, convert)
        return schema

    def with_default(
        self, parameter: Parameter, schema: dict[str, Any], convert: Optional[to.Convert]
    ) -> dict[str, Any]:
        """The schema with the parameter's default, where JSON has it and it fits."""
        name, default = parameter.name, parameter.default
        if type(default).__module__ == "datetime":
            return schema  # mostly the time at which the file was loaded
        try:
            form = plain(default)
        except (NoJson, RecursionError):
            return schema
        if form is None and default is not None:
            return schema  # not a number, or infinite
        if convert is not None:
            try:
                convert(form)
            except to.Mismatch as mismatch:
                if default is None:
                    # `n: int = None` is how many people write Optional[int].
                    self.found.converts[name] = to.any_of([convert, to.to_none])
                    return optional(schema)
                self.problem("warning", f"the default of parameter `{name}` does not fit its type: {mismatch.reason}")
                return schema
        return {**schema, "default": form}

    def shape(self, parameter: Parameter) -> tuple[dict[str, Any], Optional[to.Convert]]:
        """Schema and conversion of a parameter; anything where its type has none, which is then told."""
        hint = parameter.hint
        if isinstance(hint, str) and hint in BY_WORD and hint not in self.scope:
            hint = BY_WORD[hint]
        if isinstance(hint, type) and hint in PLAINEST:
            return PLAINEST[hint]
        from .schema import NoShape, Shapes

        if self.shapes is None:
            self.shapes = Shapes(self.scope)
        try:
            return self.shapes.shape(hint)
        except NoShape as error:
            self.problem("error", f"parameter `{parameter.name}`: {error}")
        except Exception as error:  # a type that breaks when it is looked at
            self.problem(
                "error",
                f"parameter `{parameter.name}`: its type can't be read: {type(error).__name__}: {error}",
            )
        return {}, None

    def result(self, hint: Any) -> Optional[dict[str, Any]]:
        """The schema of the result, where its type is an object with known fields."""
        from .schema import NoShape, Shapes

        shapes = Shapes(self.scope, output=True)
        try:
            kind = shapes.resolve(hint)
            origin = getattr(kind, "__origin__", kind)
            if not has_fields(origin):
                return None
            schema = shapes.shape(kind).schema
            return top(shapes.definitions.settle(schema))
        except NoShape:
            return None  # a hint for people; the tool works without
        except Exception:
            return None


def has_fields(kind: Any) -> bool:
    """Whether it is a TypedDict, a dataclass or a model, and not one of our own results."""
    if hasattr(kind, "__contract__") or not isinstance(kind, type):
        return False
    return any(hasattr(kind, name) for name in ("__required_keys__", "__dataclass_fields__", "model_json_schema"))


def top(schema: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The schema with an object at its top; None where it is something else."""
    if "$ref" in schema:
        definitions = schema.get("$defs", {})
        schema = {**definitions.get(schema["$ref"].rpartition("/")[2], {}), "$defs": definitions}
    return schema if schema.get("type") == "object" else None


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, or null, which is also the default."""
    words: dict[str, Any] = {key: schema[key] for key in ("description", "examples") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in words}
    branches = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {"anyOf": [*branches, {"type": "null"}], **words, "default": None}


def unpack_field(parameter: Parameter) -> None:
    """`n: int = Field(3, ge=1)`: pydantic's note stands where the default should."""
    from typing import Annotated, Any

    note = parameter.default
    factory = getattr(note, "default_factory", None)
    parameter.default = factory() if callable(factory) else note.default
    if type(parameter.default).__name__ in ("PydanticUndefinedType", "ellipsis"):
        parameter.default = NOTHING
    parameter.hint = Annotated[Any if parameter.hint is NOTHING else parameter.hint, note]


def document(function: Any) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what it says of each parameter."""
    text = getattr(function, "__doc__", None)
    if not isinstance(text, str) or not isinstance(function, (types.FunctionType, types.MethodType)):
        call = getattr(type(function), "__call__", None)
        text = getattr(call, "__doc__", None) if isinstance(call, types.FunctionType) else None
        text = text or (type(function).__doc__ if type(function).__module__ != "builtins" else "")
    if not text:
        return "", {}
    if "\n" not in text:
        return text.strip(), {}
    from .docstring import parse

    return parse(text)


def read(function: Callable[..., Any]) -> Signature:
    """The signature of a function."""
    return Reading(function).read()
