"""From type hints to JSON Schema and conversions. For types that need `typing`; the plainest are in `signature`."""

from __future__ import annotations

import collections
import collections.abc as abc
import sys
import types
import typing
from typing import Any, Callable, NamedTuple, Optional

from . import convert as to
from .constraints import described
from .plain import NoJson, plain
from .references import Definitions, without_titles


class Shape(NamedTuple):
    """One type: what JSON Schema says of it, and how a value becomes one (None: it stays as it is)."""

    schema: dict[str, Any]
    convert: Optional[to.Convert]


class NoShape(Exception):
    """A type that has no JSON Schema."""


ANYTHING = Shape({}, None)
SIMPLE: dict[Any, Shape] = {
    str: Shape({"type": "string"}, to.to_text),
    int: Shape({"type": "integer"}, to.to_integer),
    float: Shape({"type": "number"}, to.to_number),
    bool: Shape({"type": "boolean"}, to.to_boolean),
    None: Shape({"type": "null"}, to.to_none),
    type(None): Shape({"type": "null"}, to.to_none),
    object: ANYTHING,
    Any: ANYTHING,
}

ARRAYS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Iterable: list,
    abc.Collection: list,
    collections.deque: collections.deque,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}
UNIQUE = (set, frozenset)
MAPPINGS: dict[Any, Optional[Callable[[dict[Any, Any]], Any]]] = {
    dict: None,
    abc.Mapping: None,
    abc.MutableMapping: None,
    collections.OrderedDict: collections.OrderedDict,
    collections.defaultdict: lambda value: collections.defaultdict(None, value),
}

QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")


def word(thing: Any) -> str:
    """What a special form of `typing` or `typing_extensions` is called."""
    return str(getattr(thing, "_name", None) or getattr(thing, "__name__", "") or "")


def is_union(origin: Any) -> bool:
    return origin is typing.Union or (origin is not None and origin is getattr(types, "UnionType", None))


def hint_name(hint: Any) -> str:
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__qualname__
    return str(hint).replace("typing.", "")


class Shapes:
    """Makes the shapes of one tool's types, and gathers the definitions that they share."""

    def __init__(self, scope: dict[str, Any], output: bool = False) -> None:
        self.definitions = Definitions()
        self.scope = scope
        self.output = output
        self.variables: dict[Any, Any] = {}

    def resolve(self, hint: Any) -> Any:
        """The type behind a hint that was written in quotes."""
        if isinstance(hint, typing.ForwardRef):
            hint = hint.__forward_arg__
        if not isinstance(hint, str):
            return hint
        try:
            return self.resolve(eval(hint, self.scope))
        except NameError as error:
            raise NoShape(
                f"the type {hint!r} is not known here ({error}); import it outside of `if TYPE_CHECKING:`"
            ) from None
        except TypeError as error:
            older = " (`X | Y` needs Python 3.10; write Optional[X] or Union[X, Y])" if "|" in hint else ""
            raise NoShape(f"the type {hint!r} can't be read: {error}{older}") from None
        except Exception as error:
            raise NoShape(f"the type {hint!r} can't be read: {error}") from None

    def within(self, owner: Any, hint: Any) -> Shape:
        """The shape of a hint that stands in another class, where other names may be known."""
        before = self.scope
        module = sys.modules.get(getattr(owner, "__module__", ""))
        names = dict(vars(module)) if module else dict(before)
        names.setdefault(owner.__name__, owner)
        self.scope = names
        try:
            return self.shape(hint)
        finally:
            self.scope = before

    def shape(self, hint: Any) -> Shape:
        """The shape of a type; `NoShape` says why there is none."""
        hint = self.resolve(hint)
        try:
            if hint in SIMPLE:
                return SIMPLE[hint]
        except TypeError:
            pass  # a hint that can't be looked up
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is None:
            return self.single(hint)
        if origin is getattr(typing, "Annotated", None):
            inner = self.shape(arguments[0])
            return Shape(described(inner.schema, arguments[1:]), inner.convert)
        if is_union(origin):
            return self.union(arguments)
        if word(origin) == "Literal":
            return self.choice([(plain(value), value) for value in arguments])
        if word(origin) in QUALIFIERS:
            return self.shape(arguments[0])
        if origin in ARRAYS:
            return self.array(origin, arguments)
        if origin is tuple:
            return self.tuple_of(arguments)
        if origin in MAPPINGS:
            return self.mapping(origin, arguments)
        return self.generic(hint, origin, arguments)

    def single(self, hint: Any) -> Shape:
        """A type without parameters."""
        if isinstance(hint, typing.TypeVar):
            return self.variable(hint)
        if hasattr(hint, "__supertype__"):
            return self.shape(hint.__supertype__)
        if type(hint).__name__ == "TypeAliasType":
            return self.named(hint, hint.__name__, lambda: self.shape(hint.__value__))
        if word(hint) == "LiteralString":
            return SIMPLE[str]
        if hint in ARRAYS:
            return self.array(hint, ())
        if hint is tuple:
            return self.tuple_of((Any, ...))
        if hint in MAPPINGS:
            return self.mapping(hint, ())
        if type(hint).__name__ == "InitVar":
            return self.shape(hint.type)
        if isinstance(hint, type):
            return self.of_class(hint)
        return self.unknown(hint)

    def of_class(self, kind: type) -> Shape:
        """A class: an enum, something with fields, or one of the library's."""
        if hasattr(kind, "__members__"):
            return self.enum(kind)
        if hasattr(kind, "__pydantic_validator__"):
            return self.model(kind)
        if hasattr(kind, "__total__") and hasattr(kind, "__required_keys__"):
            return self.named(kind, kind.__name__, lambda: self.typed_dict(kind))
        if hasattr(kind, "__dataclass_fields__"):
            return self.named(kind, kind.__name__, lambda: self.data(kind))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return self.named(kind, kind.__name__, lambda: self.named_tuple(kind))
        known = self.known(kind)
        if known is not None:
            return known
        for simple in (str, int, float):
            if issubclass(kind, simple):
                wanted = "a string" if simple is str else "a number"
                kinds = (str,) if simple is str else (int, float)
                return Shape(SIMPLE[simple].schema, to.by(kind, wanted, kinds))
        return self.unknown(kind)

    def unknown(self, hint: Any) -> Shape:
        """Types that only pydantic may know; it is asked where the file uses it."""
        pydantic = sys.modules.get("pydantic")
        if pydantic is not None:
            try:
                adapter = pydantic.TypeAdapter(hint)
                schema = adapter.json_schema(mode="serialization" if self.output else "validation")
            except Exception:
                pass
            else:
                return Shape(self.definitions.adopt(schema, None), self.validated(adapter.validate_python))
        raise NoShape(f"the type {hint_name(hint)} has no JSON form")

    def known(self, kind: type) -> Optional[Shape]:
        """Classes of the standard library that JSON has as strings."""
        module, name = kind.__module__, kind.__name__
        formats: dict[tuple[str, str], tuple[str, Callable[[Any], Any], str]] = {
            ("datetime", "datetime"): (
                "date-time",
                to.iso(kind),
                "a date and time such as 2024-05-01T12:00:00Z",
            ),
            ("datetime", "date"): ("date", to.iso(kind), "a date such as 2024-05-01"),
            ("datetime", "time"): ("time", to.iso(kind), "a time such as 12:00:00"),
            ("datetime", "timedelta"): ("duration", to.read_duration, "a duration such as PT1H30M"),
            ("uuid", "UUID"): ("uuid", kind, "a UUID"),
            ("ipaddress", "IPv4Address"): ("ipv4", kind, "an IPv4 address"),
            ("ipaddress", "IPv6Address"): ("ipv6", kind, "an IPv6 address"),
        }
        if (module, name) in formats:
            form, make, wanted = formats[module, name]
            return Shape({"type": "string", "format": form}, to.by(make, wanted))
        if module.startswith("pathlib") or name == "PathLike":
            from pathlib import Path

            make = Path if name == "PathLike" else kind
            return Shape({"type": "string", "format": "path"}, to.by(make, "a path"))
        if kind in (bytes, bytearray):
            return Shape(
                {"type": "string", "contentEncoding": "base64"},
                to.by(lambda value: kind(to.from_base64(value)), "base64"),
            )
        if (module, name) == ("decimal", "Decimal"):
            schema = {"anyOf": [{"type": "number"}, {"type": "string"}]}
            return Shape(schema, to.by(lambda value: kind(str(value)), "a decimal number", (str, int, float)))
        if (module, name) == ("re", "Pattern"):
            return Shape({"type": "string", "format": "regex"}, to.by(to.read_pattern, "a regular expression"))
        return None

    def array(self, origin: Any, arguments: tuple[Any, ...]) -> Shape:
        item = self.shape(arguments[0]) if arguments else ANYTHING
        make = ARRAYS[origin]
        schema: dict[str, Any] = {"type": "array", "items": item.schema}
        if make in UNIQUE:
            schema["uniqueItems"] = True
        return Shape(schema, to.array(make, item.convert))

    def tuple_of(self, arguments: tuple[Any, ...]) -> Shape:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = self.shape(arguments[0])
            return Shape({"type": "array", "items": item.schema}, to.array(tuple, item.convert))
        items = [self.shape(argument) for argument in arguments if argument != ()]
        return self.sequence(items, tuple)

    def sequence(self, items: list[Shape], make: Callable[[list[Any]], Any]) -> Shape:
        """An array in which each place has a type of its own."""
        schema: dict[str, Any] = {"type": "array", "minItems": len(items), "maxItems": len(items)}
        if items:
            schema["prefixItems"] = [item.schema for item in items]
        return Shape(schema, to.fixed([item.convert for item in items], make))

    def mapping(self, origin: Any, arguments: tuple[Any, ...]) -> Shape:
        key, item = (self.shape(argument) for argument in (arguments or (str, Any)))
        schema: dict[str, Any] = {"type": "object", "additionalProperties": item.schema or True}
        limits = {name: part for name, part in key.schema.items() if name in ("enum", "const", "pattern", "format")}
        if limits and key.schema.get("type") == "string":
            schema["propertyNames"] = limits
        read = None if key.convert in (None, to.to_text) else to.key_by(key.convert)
        return Shape(schema, to.mapping(MAPPINGS[origin], read, item.convert))

    def union(self, arguments: tuple[Any, ...]) -> Shape:
        members = [self.shape(argument) for argument in arguments]
        branches: list[dict[str, Any]] = []
        for member in members:
            if member.schema not in branches:
                branches.append(member.schema)
        schema = branches[0] if len(branches) == 1 else {"anyOf": branches}
        return Shape(schema, to.any_of([member.convert for member in members]))

    def choice(self, pairs: list[tuple[Any, Any]]) -> Shape:
        """One of a few values, each with its JSON form before it."""
        forms = [form for form, _ in pairs]
        kinds = {type(form) for form in forms}
        schema: dict[str, Any] = {"const": forms[0]} if len(forms) == 1 else {"enum": forms}
        if len(kinds) == 1 and (kind := kinds.pop()) in SIMPLE:
            schema.update(SIMPLE[kind].schema)
        return Shape(schema, to.one_of(pairs))

    def enum(self, kind: Any) -> Shape:
        members = list(kind)
        try:
            return self.choice([(plain(member.value), member) for member in members])
        except NoJson:
            return self.choice([(member.name, member) for member in members])

    def variable(self, variable: Any) -> Shape:
        """A type variable: what stands for it here, its bound, or its choices."""
        if variable in self.variables:
            return self.shape(self.variables[variable])
        if variable.__constraints__:
            return self.union(variable.__constraints__)
        return self.shape(variable.__bound__) if variable.__bound__ is not None else ANYTHING

    def generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Shape:
        """A class or alias with type variables, such as `Box[int]`."""
        parameters = getattr(origin, "__type_params__", ()) or getattr(origin, "__parameters__", ())
        target = getattr(origin, "__value__", origin)
        if not parameters or hasattr(origin, "__pydantic_validator__"):
            return self.unknown(hint)
        before = self.variables
        self.variables = {**before, **dict(zip(parameters, arguments))}
        name = getattr(origin, "__name__", "Type") + "_" + "_".join(hint_name(argument) for argument in arguments)
        try:
            if hasattr(target, "__dataclass_fields__"):
                return self.named(hint, name, lambda: self.data(target))
            if hasattr(target, "__required_keys__"):
                return self.named(hint, name, lambda: self.typed_dict(target))
            if target is not origin:
                return self.named(hint, name, lambda: self.shape(target))
            return self.of_class(origin)
        finally:
            self.variables = before

    def named(self, key: Any, name: str, make: Callable[[], Shape]) -> Shape:
        """A type with a name: described once, and referred to, so that it may hold itself."""
        definition = self.definitions.find(key)
        if definition is None:
            definition = self.definitions.open(key, name)
            definition.schema, definition.convert = make()
        found = definition
        return Shape({"$ref": found.reference}, lambda value: value if found.convert is None else found.convert(value))

    def fields(
        self, owner: Any, hints: dict[str, Any], optional: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, tuple[str, Optional[to.Convert], bool]]]:
        """Schema and conversions of a class's fields; `optional` has those that may be missing, with their defaults."""
        from .docstring import parse

        properties: dict[str, Any] = {}
        converts: dict[str, tuple[str, Optional[to.Convert], bool]] = {}
        document = owner.__doc__ or ""
        if document.startswith(owner.__name__ + "(") or owner.__doc__ == dict.__doc__:
            document = ""  # nobody wrote it
        summary, texts = parse(document)
        for name, hint in hints.items():
            try:
                shape = self.within(owner, hint)
            except NoShape as error:
                raise NoShape(f"{owner.__name__}.{name}: {error}") from None
            schema = dict(shape.schema)
            if name in texts:
                schema.setdefault("description", texts[name])
            if name in optional and optional[name] is not MISSING:
                try:
                    schema["default"] = plain(optional[name])
                except (NoJson, RecursionError):
                    pass
            properties[name] = schema
            converts[name] = (name, shape.convert, name not in optional)
        found: dict[str, Any] = {"type": "object", "properties": properties}
        required = [name for name in hints if name not in optional]
        if required:
            found["required"] = required
        if summary:
            found["description"] = summary
        return found, converts

    def typed_dict(self, kind: Any) -> Shape:
        hints: dict[str, Any] = {}
        optional = {}
        for name, hint in all_hints(kind).items():
            word_of, inner = self.qualifier(kind, hint)
            hints[name] = inner
            needed = name in kind.__required_keys__
            if word_of == "NotRequired" or (not needed and word_of != "Required"):
                optional[name] = MISSING
        schema, converts = self.fields(kind, hints, optional)
        return Shape(schema, to.record(converts, None))

    def qualifier(self, kind: Any, hint: Any) -> tuple[str, Any]:
        """`Required` or `NotRequired`, where a hint is wrapped in one, and what it wraps."""
        before, module = self.scope, sys.modules.get(kind.__module__)
        self.scope = dict(vars(module)) if module else before
        try:
            hint = self.resolve(hint)
        except NoShape:
            return "", hint  # told when its shape is made
        finally:
            self.scope = before
        name = word(typing.get_origin(hint))
        return (name, typing.get_args(hint)[0]) if name in ("Required", "NotRequired") else ("", hint)

    def data(self, kind: Any) -> Shape:
        """A dataclass."""
        from dataclasses import MISSING as NONE_GIVEN

        hints, optional = {}, {}
        for field in kind.__dataclass_fields__.values():
            sort = getattr(getattr(field, "_field_type", None), "name", "_FIELD")
            if sort == "_FIELD_CLASSVAR" or (not field.init and not self.output):
                continue
            hints[field.name] = field.type
            if self.output:
                continue  # a result has all its fields
            if field.default is not NONE_GIVEN:
                optional[field.name] = field.default
            elif field.default_factory is not NONE_GIVEN:
                optional[field.name] = MISSING
        schema, converts = self.fields(kind, hints, optional)
        return Shape(schema, to.record(converts, kind))

    def named_tuple(self, kind: Any) -> Shape:
        """A NamedTuple: an array, as pydantic has it; an object with the names is taken too."""
        hints = all_hints(kind)
        names = kind._fields
        shapes = [self.within(kind, hints.get(name, Any)) for name in names]
        whole = self.sequence(shapes, lambda values: kind(*values))
        fields = {name: (name, shape.convert, name not in kind._field_defaults) for name, shape in zip(names, shapes)}
        as_object = to.record(fields, kind)
        required = len(names) - len(kind._field_defaults)
        schema = {**whole.schema, "minItems": required}

        def read(value: Any) -> Any:
            if type(value) is dict:
                return as_object(value)
            if type(value) is list and required <= len(value) < len(names):
                return as_object(dict(zip(names, value)))
            assert whole.convert is not None
            return whole.convert(value)

        return Shape(schema, read)

    def model(self, kind: Any) -> Shape:
        """A class that pydantic made."""
        mode = "serialization" if self.output else "validation"
        definition = self.definitions.find(kind)
        if hasattr(kind, "model_json_schema"):
            schema = kind.model_json_schema(mode=mode) if definition is None else {}
            strict = bool(kind.model_config.get("strict"))
            validate = kind.model_validate
        else:
            adapter = sys.modules["pydantic"].TypeAdapter(kind)
            schema = adapter.json_schema(mode=mode) if definition is None else {}
            strict, validate = False, adapter.validate_python
        if strict:
            from json import dumps

            def validate(value: Any) -> Any:
                return kind.model_validate_json(dumps(value))

        if definition is None:
            definition = self.definitions.open(kind, kind.__name__)
            definition.schema = self.definitions.adopt(schema, kind.__name__)
        return Shape({"$ref": definition.reference}, self.validated(validate))

    def validated(self, validate: Callable[[Any], Any]) -> to.Convert:
        """A conversion by pydantic, with its first error."""

        def read(value: Any) -> Any:
            try:
                return validate(value)
            except ValueError as error:
                raise mismatch_of(error) from None

        return to.mark_pydantic(read)


class Missing:
    """No default, or none that can be told."""


MISSING = Missing()


def mismatch_of(error: ValueError) -> to.Mismatch:
    """Pydantic's first error as ours."""
    try:
        first = error.errors()[0]  # type: ignore[attr-defined]
        mismatch = to.Mismatch(str(first["msg"]))
        mismatch.path = list(first["loc"])
    except (AttributeError, LookupError, TypeError):
        mismatch = to.Mismatch(str(error))
    return mismatch


def all_hints(kind: Any) -> dict[str, Any]:
    """The annotations of a class and of those it is derived from, oldest first."""
    found: dict[str, Any] = {}
    bases = getattr(kind, "__orig_bases__", ()) if hasattr(kind, "__required_keys__") else kind.__mro__[1:]
    for base in reversed(bases):
        base = typing.get_origin(base) or base
        if isinstance(base, type) and base is not object and hasattr(base, "__annotations__") and base is not kind:
            found.update(all_hints(base))
    own = kind.__dict__.get("__annotations__")
    found.update(own if own is not None else getattr(kind, "__annotations__", {}))
    return found


__all__ = ["ANYTHING", "NoShape", "Shape", "Shapes", "mismatch_of", "without_titles"]
