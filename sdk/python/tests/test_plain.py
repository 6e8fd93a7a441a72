"""Results become JSON."""

from __future__ import annotations

import collections
import datetime
import decimal
import pathlib
import re
import types
import uuid
from typing import Any

import pytest

import types_used as use
from toolcrib import Attachment, Result
from toolcrib.plain import NoJson, plain, result_of

PNG = b"\x89PNG\r\n\x1a\n1234"

GOOD: list[tuple[Any, Any]] = [
    ("a", "a"),
    (1, 1),
    (2**64, 18446744073709551616),
    (-(2**70), -1180591620717411303424),
    (1.5, 1.5),
    (float("nan"), None),
    ({"a": float("inf")}, {"a": None}),
    ({1: 2, None: 3, True: 4, use.Colour.RED: 5}, {"1": 4, "null": 3, "red": 5}),
    ((1, 2), [1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"a", 1}), ["a", 1]),
    (use.Colour.RED, "red"),
    (use.Level.LOW, 1),
    (use.Word.YES, "yes"),
    (use.Point(1, 2), {"x": 1, "y": 2}),
    (use.Tree("a", [use.Tree("b")]), {"name": "a", "children": [{"name": "b", "children": []}]}),
    (use.Pair(1), {"first": 1, "second": "x"}),
    ([use.Pair(1)], [{"first": 1, "second": "x"}]),
    (datetime.date(2024, 5, 1), "2024-05-01"),
    (datetime.datetime(2024, 5, 1, 12), "2024-05-01T12:00:00"),
    (datetime.timedelta(hours=25, microseconds=500000), "P1DT1H0.5S"),
    (datetime.timedelta(), "PT0S"),
    (pathlib.Path("a/b"), "a/b"),
    (decimal.Decimal("1.10"), "1.10"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (re.compile("a+"), "a+"),
    (use.Text("a"), "a"),
    (collections.deque([1]), [1]),
    (collections.OrderedDict(a=1), {"a": 1}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (range(3), [0, 1, 2]),
    ({"a": b"hi"}, {"a": "aGk="}),
]


@pytest.mark.parametrize(("value", "expected"), GOOD, ids=[repr(value)[:40] for value, _ in GOOD])
def test_plain(value: Any, expected: Any) -> None:
    found = plain(value)
    if isinstance(value, frozenset):
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "value", [object(), {"a": object()}, [1, lambda: 1], print, {(1, 2): 3}, iter([1]), ValueError("x")]
)
def test_no_json(value: Any) -> None:
    with pytest.raises(NoJson):
        plain(value)


def test_the_type_is_named() -> None:
    with pytest.raises(NoJson, match=r"a value of type types\.SimpleNamespace has no JSON form"):
        plain({"a": types.SimpleNamespace()})


def test_results() -> None:
    assert result_of(None) == ""
    assert result_of({"output": "a", "title": "b"}) == {"output": "a", "title": "b"}
    assert result_of(b"hi") == {
        "output": "2 bytes, application/octet-stream",
        "attachments": [{"type": "file", "mimeType": "application/octet-stream", "data": "aGk="}],
    }
    assert result_of(PNG)["attachments"][0]["type"] == "image"


def test_result_and_attachment() -> None:
    result = Result(
        "a",
        title="b",
        metadata={"c": 1},
        attachments=[Attachment("d"), Attachment(PNG, name="e.png")],
        is_error=True,
    )
    assert result_of(result) == {
        "output": "a",
        "title": "b",
        "metadata": {"c": 1},
        "attachments": [
            {"type": "text", "mimeType": "text/plain", "text": "d"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoxMjM0", "name": "e.png"},
        ],
        "isError": True,
    }
    assert result_of(Result(structured=use.Point(1, 2))) == {"output": "", "structured": {"x": 1, "y": 2}}
    assert result_of(Attachment("d"))["attachments"][0]["text"] == "d"


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        when: datetime.date = pydantic.Field(alias="at")

    assert plain(Model(at="2024-05-01")) == {"at": "2024-05-01"}
