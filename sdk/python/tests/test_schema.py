"""Signatures and the schemas they give, compared with pydantic's where it describes the same type."""

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import pathlib
import re
import sys
import typing
import uuid
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Dict,
    FrozenSet,
    List,
    Literal,
    Optional,
    Set,
    Tuple,
    Union,
)

import pytest

import types_used as use
from toolcrib.references import each, without_titles
from toolcrib.schema import NoShape, Shapes

try:
    import annotated_types
    import pydantic
except ImportError:
    pydantic = None  # type: ignore[assignment]
    annotated_types = None  # type: ignore[assignment]

STRING, INTEGER, NUMBER, BOOLEAN, NULL = ({"type": kind} for kind in ("string", "integer", "number", "boolean", "null"))


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def fixed(*items: Any) -> dict[str, Any]:
    return {"type": "array", "minItems": len(items), "maxItems": len(items), "prefixItems": list(items)}


def record(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
        **more,
    }


def either(*branches: Any) -> dict[str, Any]:
    return {"anyOf": list(branches)}


def text(form: str) -> dict[str, Any]:
    return {"type": "string", "format": form}


POINT = record(
    {"x": {**NUMBER, "description": "To the right."}, "y": {**NUMBER, "default": 0.0}},
    "x",
    description="A point.",
)
MOVIE = record({"title": STRING, "year": INTEGER}, "title", "year")
ANY_DICT = {"type": "object", "additionalProperties": True}

# A hint, its schema, and whether pydantic says the same.
TABLE: list[tuple[str, Any, dict[str, Any], bool]] = [
    ("str", str, STRING, True),
    ("int", int, INTEGER, True),
    ("float", float, NUMBER, True),
    ("bool", bool, BOOLEAN, True),
    ("None", None, NULL, True),
    ("Any", Any, {}, True),
    ("object", object, {}, False),
    ("list", list, array({}), True),
    ("List", List, array({}), True),
    ("list[int]", List[int], array(INTEGER), True),
    ("nested list", List[List[str]], array(array(STRING)), True),
    ("builtin list[str]", list[str], array(STRING), True),
    ("Sequence", Sequence[int], array(INTEGER), True),
    ("abc.Sequence", collections.abc.Sequence[int], array(INTEGER), True),
    ("Iterable", typing.Iterable[int], array(INTEGER), True),
    ("deque", typing.Deque[int], array(INTEGER), True),
    ("set", set, array({}, uniqueItems=True), True),
    ("Set[int]", Set[int], array(INTEGER, uniqueItems=True), True),
    ("FrozenSet[str]", FrozenSet[str], array(STRING, uniqueItems=True), True),
    ("AbstractSet", typing.AbstractSet[str], array(STRING, uniqueItems=True), True),
    ("tuple", tuple, array({}), True),
    ("Tuple[int, ...]", Tuple[int, ...], array(INTEGER), True),
    ("Tuple[int, str]", Tuple[int, str], fixed(INTEGER, STRING), True),
    ("builtin tuple", tuple[int, str, bool], fixed(INTEGER, STRING, BOOLEAN), True),
    ("empty tuple", Tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}, True),
    ("dict", dict, ANY_DICT, True),
    ("Dict", Dict, ANY_DICT, True),
    ("Dict[str, Any]", Dict[str, Any], ANY_DICT, True),
    ("Dict[str, int]", Dict[str, int], {"type": "object", "additionalProperties": INTEGER}, True),
    ("Mapping", Mapping[str, float], {"type": "object", "additionalProperties": NUMBER}, True),
    ("dict of lists", Dict[str, List[int]], {"type": "object", "additionalProperties": array(INTEGER)}, True),
    ("dict[int, str]", Dict[int, str], {"type": "object", "additionalProperties": STRING}, True),
    (
        "dict[Literal, int]",
        Dict[Literal["a", "b"], int],
        {"type": "object", "additionalProperties": INTEGER, "propertyNames": {"enum": ["a", "b"]}},
        True,
    ),
    ("OrderedDict", typing.OrderedDict[str, int], {"type": "object", "additionalProperties": INTEGER}, True),
    ("Optional", Optional[int], either(INTEGER, NULL), True),
    ("Union", Union[int, str], either(INTEGER, STRING), True),
    ("Union with None", Union[int, str, None], either(INTEGER, STRING, NULL), True),
    ("Optional list", Optional[List[int]], either(array(INTEGER), NULL), True),
    ("list of Union", List[Union[int, str]], array(either(INTEGER, STRING)), True),
    ("Literal", Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, True),
    ("Literal numbers", Literal[1, 2], {"enum": [1, 2], "type": "integer"}, True),
    ("Literal mixed", Literal["a", 1], {"enum": ["a", 1]}, True),
    ("Literal single", Literal["only"], {"const": "only", "type": "string"}, True),
    ("Literal bool", Literal[True], {"const": True, "type": "boolean"}, True),
    ("Enum", use.Colour, {"enum": ["red", "blue"], "type": "string"}, True),
    ("IntEnum", use.Level, {"enum": [1, 2], "type": "integer"}, True),
    ("str Enum", use.Word, {"enum": ["yes", "no"], "type": "string"}, True),
    ("mixed Enum", use.Mixed, {"enum": [1, "two"]}, True),
    ("Enum of objects", use.Odd, {"enum": ["THING", "OTHER"], "type": "string"}, False),
    ("list of Enum", List[use.Colour], array({"enum": ["red", "blue"], "type": "string"}), True),
    ("Annotated words", Annotated[int, "how many"], {**INTEGER, "description": "how many"}, False),
    ("Annotated list", Annotated[List[str], "some"], array(STRING, description="some"), False),
    ("TypedDict", use.Movie, MOVIE, True),
    ("TypedDict of typing itself", use.Standard, record({"a": INTEGER}, "a"), False),
    ("TypedDict total=False", use.Loose, record({"a": INTEGER, "b": STRING}), True),
    ("TypedDict derived", use.Partly, record({"a": INTEGER, "b": STRING, "c": BOOLEAN}, "c"), True),
    ("list of TypedDict", List[use.Movie], array(MOVIE), True),
    ("dataclass", use.Point, POINT, True),
    (
        "dataclass with default_factory",
        use.Line,
        {
            **record(
                {"start": {"$ref": "#/$defs/Point"}, "end": {"$ref": "#/$defs/Point"}, "tags": array(STRING)},
                "start",
                "end",
            ),
            "$defs": {"Point": POINT},
        },
        True,
    ),
    (
        "recursive dataclass",
        use.Tree,
        {
            "$ref": "#/$defs/Tree",
            "$defs": {"Tree": record({"name": STRING, "children": array({"$ref": "#/$defs/Tree"})}, "name")},
        },
        True,
    ),
    ("generic dataclass", use.Box[int], record({"inside": INTEGER}, "inside"), True),
    ("generic dataclass, open", use.Box, record({"inside": {}}, "inside"), True),
    ("NamedTuple", use.Pair, {**fixed(INTEGER, {**STRING}), "minItems": 1}, False),
    ("namedtuple", use.Bare, fixed({}, {}), True),
    ("datetime", datetime.datetime, text("date-time"), True),
    ("date", datetime.date, text("date"), True),
    ("time", datetime.time, text("time"), True),
    ("timedelta", datetime.timedelta, text("duration"), True),
    ("UUID", uuid.UUID, text("uuid"), True),
    ("Path", pathlib.Path, text("path"), True),
    ("Decimal", decimal.Decimal, either(NUMBER, STRING), True),
    ("bytes", bytes, {"type": "string", "contentEncoding": "base64"}, False),
    ("Pattern", re.Pattern, text("regex"), False),
    ("NewType", use.UserId, INTEGER, True),
    ("TypeVar", use.T, {}, True),
    ("TypeVar with a bound", use.Bound, INTEGER, True),
    ("TypeVar with choices", use.Number, either(INTEGER, STRING), True),
    ("str subclass", use.Text, STRING, False),
    ("JSON", use.Json, either(ANY_DICT, array({}), STRING, INTEGER, NUMBER, BOOLEAN, NULL), True),
    ("quoted", "int", INTEGER, False),
    ("quoted in a list", List["int"], array(INTEGER), True),
    ("quoted in a builtin list", list["use.Movie"], array(MOVIE), False),
]
if sys.version_info >= (3, 10):
    TABLE += [
        ("X | Y", eval("int | str"), either(INTEGER, STRING), True),
        ("X | None", eval("list[int] | None"), either(array(INTEGER), NULL), True),
    ]
if use.MODERN:
    import enum

    TABLE += [
        ("Required", use.Ticket, record({"number": INTEGER, "note": STRING}, "number"), True),
        ("NotRequired", use.Order, record({"item": STRING, "count": INTEGER}, "item"), True),
        ("StrEnum", enum.StrEnum("Size", ["S", "M"]), {"enum": ["s", "m"], "type": "string"}, True),
        ("LiteralString", typing.LiteralString, STRING, False),
    ]
if pydantic is not None:
    from pydantic import Field

    class Address(pydantic.BaseModel):
        street: str
        number: int = Field(default=1, ge=1)

    class Person(pydantic.BaseModel):
        name: str = Field(description="Full name")
        home: Address
        work: Optional[Address] = None

    class Folder(pydantic.BaseModel):
        name: str
        folders: List[Folder] = []

    ADDRESS = record({"street": STRING, "number": {**INTEGER, "default": 1, "minimum": 1}}, "street")
    TABLE += [
        ("Field ge le", Annotated[int, Field(ge=1, le=5)], {**INTEGER, "minimum": 1, "maximum": 5}, True),
        (
            "Field gt lt",
            Annotated[float, Field(gt=0, lt=1)],
            {**NUMBER, "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            True,
        ),
        ("Field multiple_of", Annotated[int, Field(multiple_of=3)], {**INTEGER, "multipleOf": 3}, True),
        (
            "Field description",
            Annotated[str, Field(description="words")],
            {**STRING, "description": "words"},
            True,
        ),
        (
            "Field lengths",
            Annotated[str, Field(min_length=1, max_length=9, pattern="^a")],
            {**STRING, "minLength": 1, "maxLength": 9, "pattern": "^a"},
            True,
        ),
        ("Field list lengths", Annotated[List[int], Field(min_length=1)], array(INTEGER, minItems=1), True),
        (
            "Field on Optional",
            Annotated[Optional[int], Field(ge=1)],
            either({**INTEGER, "minimum": 1}, NULL),
            True,
        ),
        ("Field in a list", List[Annotated[int, Field(ge=1)]], array({**INTEGER, "minimum": 1}), True),
        ("annotated-types", Annotated[int, annotated_types.Ge(2)], {**INTEGER, "minimum": 2}, True),
        (
            "annotated-types Len",
            Annotated[List[int], annotated_types.Len(1, 3)],
            array(INTEGER, minItems=1, maxItems=3),
            True,
        ),
        ("conint", pydantic.conint(ge=3), {**INTEGER, "minimum": 3}, True),
        ("model", Address, ADDRESS, True),
        ("list of models", List[Address], array(ADDRESS), True),
        (
            "nested models",
            Person,
            {
                **record(
                    {
                        "name": {**STRING, "description": "Full name"},
                        "home": {"$ref": "#/$defs/Address"},
                        "work": {**either({"$ref": "#/$defs/Address"}, NULL), "default": None},
                    },
                    "name",
                    "home",
                ),
                "$defs": {"Address": ADDRESS},
            },
            True,
        ),
        (
            "recursive model",
            Folder,
            {
                "$ref": "#/$defs/Folder",
                "$defs": {
                    "Folder": record({"name": STRING, "folders": array({"$ref": "#/$defs/Folder"}, default=[])}, "name")
                },
            },
            True,
        ),
        ("a type that only pydantic knows", pydantic.AnyUrl, {**text("uri"), "minLength": 1}, True),
    ]


def schema_of(hint: Any) -> dict[str, Any]:
    shapes = Shapes(globals())
    return shapes.definitions.settle(shapes.shape(hint).schema)


@pytest.mark.parametrize(("hint", "expected"), [row[1:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_schema(hint: Any, expected: dict[str, Any]) -> None:
    assert schema_of(hint) == expected


def spread(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in a form that can be compared: references in place, words of classes left out."""
    schema = without_titles(schema)
    definitions = schema.get("$defs", {})

    def change(part: dict[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
        reference = part.get("$ref", "")
        if reference in inside:
            return {"again": reference}
        if reference:
            rest = {key: value for key, value in part.items() if key != "$ref"}
            return {**change(definitions[reference.rpartition("/")[2]], (*inside, reference)), **rest}
        part = {
            key: value
            for key, value in part.items()
            if key not in ("$defs", "additionalProperties") or value is not True
        }
        if part.get("type") == "object":
            part.pop("description", None)
        if part.get("items") == {}:
            part.pop("items")
        part.get("required", []).sort()
        return each({key: value for key, value in part.items() if key != "$defs"}, lambda inner: change(inner, inside))

    return change(schema, ())


SAME = [row for row in TABLE if row[3]]


@pytest.mark.skipif(pydantic is None, reason="pydantic is not installed")
@pytest.mark.parametrize("hint", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_pydantic_says_the_same(hint: Any) -> None:
    def no_words(part: dict[str, Any]) -> dict[str, Any]:
        # Pydantic does not read docstrings, nor tells empty lists as defaults.
        kept = {key: value for key, value in part.items() if key != "description" or hint_has_words(hint)}
        return each(kept, no_words)

    theirs = pydantic.TypeAdapter(hint).json_schema()
    assert no_words(spread(schema_of(hint))) == no_words(spread(theirs))


def hint_has_words(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated


def test_there_are_enough() -> None:
    assert len(TABLE) >= 60


@pytest.mark.parametrize("hint", [typing.Callable[[], int], type, "Nowhere", List["Nowhere"], range])
def test_no_schema(hint: Any) -> None:
    with pytest.raises(NoShape):
        schema_of(hint)


def test_mutual_recursion_ends() -> None:
    schema = schema_of(use.Left)
    assert schema["$ref"] == "#/$defs/Left"
    inner = schema["$defs"]["Left"]["properties"]["right"]["anyOf"][0]
    assert inner["properties"]["left"]["anyOf"][0] == {"$ref": "#/$defs/Left"}


def test_two_types_of_one_name() -> None:
    first, second = (use.dataclass(type("Same", (), {"__annotations__": {"a": kind}})) for kind in (int, str))
    schema = schema_of(Tuple[first, first, second, second])  # type: ignore[valid-type]
    assert set(schema["$defs"]) == {"Same", "Same2"}
