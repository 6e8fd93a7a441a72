"""Functions: which parameters they show, and what is said about them."""

from __future__ import annotations

import functools
from typing import Any, Optional

import pytest

import types_used as use
from toolcrib import Context, Result
from toolcrib.convert import Mismatch
from toolcrib.signature import Signature, read


def problems(found: Signature) -> list[str]:
    return [f"{severity}: {message}" for severity, message in found.problems]


def test_plain() -> None:
    def greet(name: str, times: int = 1, *, loud: bool = False) -> str:
        """Greets."""
        return name

    found = read(greet)
    assert found.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "times": {"type": "integer", "default": 1},
            "loud": {"type": "boolean", "default": False},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert found.summary == "Greets."
    assert found.output is None
    assert not found.problems


def test_no_parameters() -> None:
    assert read(lambda: None).schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_keywords_make_it_open() -> None:
    def f(a: int, **rest: int) -> None: ...

    found = read(f)
    assert found.schema["additionalProperties"] is True
    assert found.bind({"a": 1, "b": 2}, None) == ([], {"a": 1, "b": 2})
    with pytest.raises(Mismatch, match="`b`: expected an integer"):
        found.bind({"a": 1, "b": "x"}, None)


def test_rest_is_refused() -> None:
    def f(*values: int) -> None: ...

    assert problems(read(f)) == ["error: *values can't be given by name; take a list: values: list[…]"]


def test_positional_only() -> None:
    def f(a: int, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    found = read(f)
    values, named = found.bind({"a": 1, "c": 5}, None)
    assert f(*values, **named) == (1, 2, 5)


@pytest.mark.parametrize(
    "hint", [Context, Optional[Context], "Context", "Optional[Context]", "Context | None", "toolcrib.Context"]
)
def test_context_by_type(hint: Any) -> None:
    def f(a: int, call: Any = None) -> None: ...

    f.__annotations__ = {"a": int, "call": hint}
    found = read(f)
    assert found.context == "call"
    assert list(found.schema["properties"]) == ["a"]


def test_context_by_name() -> None:
    def f(ctx, a: int) -> None: ...  # type: ignore[no-untyped-def]

    found = read(f)
    assert found.bind({"a": 1}, "the context") == ([], {"a": 1, "ctx": "the context"})
    assert not found.problems


def test_without_type() -> None:
    def f(a, b=3): ...  # type: ignore[no-untyped-def]

    found = read(f)
    assert found.schema["properties"] == {"a": {}, "b": {"default": 3}}
    assert [problem.split(",")[0] for problem in problems(found)] == [
        "warning: parameter `a` has no type",
        "warning: parameter `b` has no type",
    ]


def test_default_of_a_wrong_type() -> None:
    def f(n: int = "x") -> None: ...  # type: ignore[assignment]

    found = read(f)
    assert found.schema["properties"] == {"n": {"type": "integer"}}
    assert "required" not in found.schema
    assert problems(found) == [
        "warning: the default of parameter `n` does not fit its type: expected an integer, got a string ('x')"
    ]


def test_none_as_default_means_optional() -> None:
    def f(n: int = None) -> None: ...  # type: ignore[assignment]

    found = read(f)
    assert found.schema["properties"]["n"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }
    assert found.bind({"n": None}, None) == ([], {"n": None})
    assert not found.problems


def test_defaults_without_json() -> None:
    def f(
        a: Any = object(),
        b: float = float("nan"),
        c: use.Colour = use.Colour.RED,
        d: set[int] = frozenset({2, 1}),
    ) -> None: ...  # type: ignore[assignment]

    f.__annotations__["d"] = set
    properties = read(f).schema["properties"]
    assert "default" not in properties["a"]
    assert "default" not in properties["b"]
    assert properties["c"]["default"] == "red"
    assert properties["d"]["default"] == [1, 2]


def test_unknown_type_is_told() -> None:
    def f(a: Nowhere, b: int) -> None: ...  # type: ignore[name-defined]

    (problem,) = problems(read(f))
    assert problem.startswith("error: parameter `a`: the type 'Nowhere' is not known here")


def test_a_thousand_parameters() -> None:
    scope: dict[str, Any] = {}
    names = [f"p{number}" for number in range(1000)]
    exec(f"def f({', '.join(name + ': int' for name in names)}): return p0 + p999", scope)
    found = read(scope["f"])
    assert len(found.schema["required"]) == 1000
    values, named = found.bind(dict.fromkeys(names, 1), None)
    assert scope["f"](*values, **named) == 2


def test_wrapped_and_partial() -> None:
    def f(a: int, b: int) -> int:
        return a + b

    @functools.wraps(f)
    def wrapper(*values: Any, **named: Any) -> Any:
        return f(*values, **named)

    assert read(wrapper).schema["required"] == ["a", "b"]
    assert read(functools.partial(f, b=2)).schema["required"] == ["a"]


def test_callable_object() -> None:
    class Adder:
        async def __call__(self, a: int) -> int:
            """Adds."""
            return a

    found = read(Adder())
    assert found.asynchronous
    assert found.summary == "Adds."
    assert list(found.schema["properties"]) == ["a"]


def test_generators_are_refused() -> None:
    def f():  # type: ignore[no-untyped-def]
        yield 1

    async def g():  # type: ignore[no-untyped-def]
        yield 1

    for function in (f, g):
        assert problems(read(function))[0].startswith("error: it yields")


def test_output_schema() -> None:
    def movie() -> use.Movie: ...  # type: ignore[empty-body]
    def point() -> use.Point: ...  # type: ignore[empty-body]
    def tree() -> use.Tree: ...  # type: ignore[empty-body]
    def result() -> Result: ...  # type: ignore[empty-body]
    def text() -> str: ...  # type: ignore[empty-body]
    def pair() -> use.Pair: ...  # type: ignore[empty-body]
    def unknown() -> Nowhere: ...  # type: ignore[name-defined]

    assert read(movie).output == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["title", "year"],
    }
    output = read(point).output
    assert output is not None
    assert output["required"] == ["x", "y"]
    output = read(tree).output
    assert output is not None
    assert output["type"] == "object"
    assert output["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    for function in (result, text, pair, unknown):
        assert read(function).output is None


def test_field_as_default() -> None:
    pydantic = pytest.importorskip("pydantic")

    def f(n: int = pydantic.Field(3, ge=1, description="how many"), m: int = pydantic.Field(ge=0)) -> int:
        return n

    found = read(f)
    assert found.schema["properties"]["n"] == {
        "type": "integer",
        "minimum": 1,
        "description": "how many",
        "default": 3,
    }
    assert found.schema["required"] == ["m"]
    assert found.bind({"m": 1}, None) == ([], {"n": 3, "m": 1})


def test_missing_and_unknown() -> None:
    def f(name: str, count: int = 1) -> None: ...

    found = read(f)
    with pytest.raises(Mismatch, match="`name`: it is missing"):
        found.bind({}, None)
    with pytest.raises(Mismatch, match=r"`cuont`: there is no such parameter; did you mean 'count'\?"):
        found.bind({"name": "a", "cuont": 2}, None)
