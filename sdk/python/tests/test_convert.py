"""JSON values become what the types say, or it is told where they do not fit."""

from __future__ import annotations

import collections
import datetime
import decimal
import pathlib
import re
import uuid
from collections.abc import Mapping
from typing import Any, Deque, Dict, FrozenSet, List, Literal, Optional, Set, Tuple, Union

import pytest

import types_used as use
from toolcrib.convert import Mismatch
from toolcrib.schema import Shapes

UTC = datetime.timezone.utc
NAME = "12345678-1234-5678-1234-567812345678"


def converted(hint: Any, value: Any) -> Any:
    convert = Shapes(globals()).shape(hint).convert
    return value if convert is None else convert(value)


GOOD: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (int, 3, 3),
    (int, 3.0, 3),
    (float, 3, 3.0),
    (bool, True, True),
    (Any, {"a": [1]}, {"a": [1]}),
    (Optional[int], None, None),
    (List[int], [1, 2], [1, 2]),
    (Set[int], [1, 1, 2], {1, 2}),
    (FrozenSet[str], ["a"], frozenset({"a"})),
    (Deque[int], [1], collections.deque([1])),
    (Tuple[int, ...], [1, 2], (1, 2)),
    (Tuple[int, str], [1, "a"], (1, "a")),
    (Dict[str, float], {"a": 1}, {"a": 1.0}),
    (Dict[int, str], {"3": "a"}, {3: "a"}),
    (Dict[use.Colour, int], {"red": 1}, {use.Colour.RED: 1}),
    (Dict[use.Level, int], {"2": 1}, {use.Level.HIGH: 1}),
    (Mapping[str, use.Point], {"a": {"x": 1}}, {"a": use.Point(1.0)}),
    (Union[int, str], "5", "5"),
    (Union[float, int], 3, 3),
    (Union[datetime.date, str], "2024-05-01", datetime.date(2024, 5, 1)),
    (Union[datetime.date, str], "tomorrow", "tomorrow"),
    (Union[use.Point, use.Movie], {"title": "a", "year": 1}, {"title": "a", "year": 1}),
    (Literal["a", 1], 1, 1),
    (use.Colour, "blue", use.Colour.BLUE),
    (use.Level, 1, use.Level.LOW),
    (use.Odd, "THING", use.Odd.THING),
    (use.Point, {"x": 1}, use.Point(1.0, 0.0)),
    (use.Line, {"start": {"x": 1}, "end": {"x": 2}}, use.Line(use.Point(1.0), use.Point(2.0))),
    (use.Tree, {"name": "a", "children": [{"name": "b"}]}, use.Tree("a", [use.Tree("b")])),
    (use.Box[use.Point], {"inside": {"x": 1}}, use.Box(use.Point(1.0))),
    (use.Movie, {"title": "a", "year": 1.0}, {"title": "a", "year": 1}),
    (use.Loose, {}, {}),
    (use.Pair, [1], use.Pair(1)),
    (use.Pair, [1, "b"], use.Pair(1, "b")),
    (use.Pair, {"first": 1, "second": "b"}, use.Pair(1, "b")),
    (use.Text, "a", use.Text("a")),
    (use.UserId, 3, 3),
    (datetime.datetime, "2024-05-01T12:00:00Z", datetime.datetime(2024, 5, 1, 12, tzinfo=UTC)),
    (datetime.time, "12:30:00", datetime.time(12, 30)),
    (datetime.timedelta, "P1DT2H0.5S", datetime.timedelta(days=1, hours=2, seconds=0.5)),
    (datetime.timedelta, "-PT1M", datetime.timedelta(minutes=-1)),
    (uuid.UUID, NAME, uuid.UUID(NAME)),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (decimal.Decimal, 1.1, decimal.Decimal("1.1")),
    (bytes, "aGk=", b"hi"),
    (re.Pattern, "a+", re.compile("a+")),
]


@pytest.mark.parametrize(("hint", "value", "expected"), GOOD, ids=[f"{hint} {value}" for hint, value, _ in GOOD])
def test_converts(hint: Any, value: Any, expected: Any) -> None:
    found = converted(hint, value)
    assert found == expected
    assert type(found) is type(expected)


BAD: list[tuple[Any, Any, str]] = [
    (str, 1, r"expected a string, got a number \(1\)"),
    (int, "1", "expected an integer, got a string"),
    (int, True, "expected an integer, got a boolean"),
    (int, 1.5, "expected an integer"),
    (float, 10**400, "not that large"),
    (bool, 1, "expected true or false"),
    (Optional[int], "x", "expected an integer.*; or expected null"),
    (List[int], [1, "x"], r"`\[1\]`: expected an integer"),
    (List[int], "x", "expected an array"),
    (Dict[str, List[int]], {"a": [0, None]}, r"`a\[1\]`: expected an integer, got null"),
    (Dict[int, str], {"x": "a"}, "`x`: expected a number as key"),
    (Tuple[int, str], [1], "expected 2 items, got 1"),
    (Set[Any], [[1]], "unhashable"),
    (Literal["a", "b"], "c", "expected one of 'a', 'b'"),
    (Literal[1], True, "expected one of 1"),
    (use.Colour, "green", "expected one of 'red', 'blue'"),
    (use.Point, {}, "`x`: it is missing"),
    (use.Line, {"start": {"x": "a"}, "end": {}}, r"`start.x`: expected a number"),
    (use.Even, {"n": 1}, "n is odd"),
    (use.Movie, {"title": "a"}, "`year`: it is missing"),
    (datetime.date, "soon", "expected a date such as 2024-05-01"),
    (datetime.timedelta, "P", "expected a duration"),
    (uuid.UUID, "x", "expected a UUID"),
    (decimal.Decimal, "x", "expected a decimal number"),
    (bytes, "%%", "expected base64"),
    (re.Pattern, "(", "expected a regular expression"),
]


@pytest.mark.parametrize(("hint", "value", "words"), BAD, ids=[f"{hint} {str(value)[:20]}" for hint, value, _ in BAD])
def test_does_not_convert(hint: Any, value: Any, words: str) -> None:
    with pytest.raises(Mismatch) as raised:
        converted(hint, value)
    assert re.search(words, str(raised.value))


def test_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        n: int

    class Outer(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        inner: Inner
        when: datetime.date

    class Strict(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        model_config = pydantic.ConfigDict(strict=True)
        when: datetime.date

    day = datetime.date(2024, 5, 1)
    assert converted(Outer, {"inner": {"n": 1}, "when": "2024-05-01"}) == Outer(inner=Inner(n=1), when=day)
    assert converted(Strict, {"when": "2024-05-01"}) == Strict(when=day)
    with pytest.raises(Mismatch, match=r"`\[0\].inner.n`: Input should be a valid integer"):
        converted(List[Outer], [{"inner": {"n": "x"}, "when": "2024-05-01"}])
