"""LangChain's files run as they are, with the package and with the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hosting import Hosted

FILES = Path(__file__).parent / "langchain_files"
INSTALLED = find_spec("langchain_core") is not None
WITH_PACKAGE = pytest.param(
    False, id="package", marks=pytest.mark.skipif(not INSTALLED, reason="langchain-core is not installed")
)


@pytest.fixture(params=[WITH_PACKAGE, pytest.param(True, id="stand-in")])
def either(request: pytest.FixtureRequest) -> Iterator[Hosted]:
    with Hosted(bare=request.param) as hosted:
        yield hosted


def load(host: Hosted, name: str) -> dict[str, dict[str, Any]]:
    result = host.loaded((FILES / name).read_text())
    assert result["problems"] == []
    return {tool["name"]: tool for tool in result["tools"]}


def test_arithmetic(either: Hosted) -> None:
    tools = load(either, "arithmetic.py")
    assert list(tools) == ["multiply", "divide"]
    assert tools["multiply"]["description"] == "Multiply two whole numbers."
    assert tools["multiply"]["inputSchema"]["properties"] == {
        "first": {"type": "integer", "description": "The number to start from."},
        "second": {"type": "integer", "description": "How many times it is taken."},
    }
    assert tools["multiply"]["inputSchema"]["required"] == ["first", "second"]
    assert tools["multiply"]["line"] == 7
    assert tools["divide"]["description"] == "Divide one number by another."
    assert tools["divide"]["inputSchema"]["properties"]["second"]["default"] == 2.0
    assert either.result("multiply", {"first": 6, "second": 7}) == 42
    assert either.result("divide", {"first": 5}) == 2.5
    error = either.error("divide", {"first": 5, "second": 0})
    assert (error["code"], error["message"]) == (-32001, "nothing can be divided by zero")
    assert "langchain_core" not in error["data"]["traceback"].rpartition("\n")[0]
    assert either.error("multiply", {"first": [], "second": 7})["code"] == -32602
    assert either.error("multiply", {"first": 6})["code"] == -32602


def test_search(either: Hosted) -> None:
    tools = load(either, "search.py")
    assert tools["web-search"]["metadata"] == {"returnDirect": True}
    assert list(tools["slow_search"]["inputSchema"]["properties"]) == ["query", "limit"]
    assert either.result("web-search", {"query": "crib"}) == "A crib is where tools are kept."
    assert either.result("slow_search", {"query": "tool"}) == ["A tool is something to work with."]


def test_artifact(either: Hosted) -> None:
    tools = load(either, "artifact.py")
    assert list(tools["which_call"]["inputSchema"]["properties"]) == ["word"]
    result = either.result("draw", {"count": 3})
    assert result["output"] == "3 numbers were drawn"
    assert len(result["metadata"]["artifact"]) == 3
    assert either.result("which_call", {"word": "this is"}) == "this is c-1"


def test_classes(either: Hosted) -> None:
    tools = load(either, "classes.py")
    assert list(tools) == ["shout", "whisper", "later"]
    assert list(tools["shout"]["inputSchema"]["properties"]) == ["text", "marks"]
    assert tools["whisper"]["description"] == "Say it quietly."
    assert either.result("shout", {"text": "ho", "marks": 2}) == "HO!!"
    assert either.result("whisper", {"text": "HO"}) == "ho"
    assert either.result("later", {"text": "HO"}) == "ho…"


@pytest.mark.skipif(not INSTALLED, reason="langchain-core is not installed")
def test_models(host: Hosted) -> None:
    (tool,) = load(host, "models.py").values()
    check_trip(host, tool)


def test_models_with_the_stand_in(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    # Pydantic without LangChain: a folder with links to what it needs.
    for name in ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"):
        found = find_spec(name)
        assert found and found.origin
        origin = Path(found.origin)
        origin = origin.parent if origin.name == "__init__.py" else origin
        (tmp_path / origin.name).symlink_to(origin)
    with Hosted(bare=True, env={"PYTHONPATH": str(tmp_path)}) as host:
        (tool,) = load(host, "models.py").values()
        check_trip(host, tool)


def check_trip(host: Hosted, tool: dict[str, Any]) -> None:
    assert tool["name"] == "plan-trip"
    assert tool["description"] == "Plan a trip."
    by = tool["inputSchema"]["properties"]["by"]
    assert by == {
        "enum": ["train", "ship"],
        "type": "string",
        "default": "train",
        "description": "How to travel",
    }
    given = {"stops": [{"place": "Bergen", "nights": 2}, {"place": "Oslo"}]}
    assert host.result("plan-trip", given) == "by train: Bergen (2), Oslo (1)"
    error = host.error("plan-trip", {"stops": [{"nights": 2}]})
    assert error["code"] == -32602
    assert "`stops[0].place`" in error["message"]


def test_a_tool_of_another_file_is_left_there(either: Hosted) -> None:
    shared = (FILES / "arithmetic.py").read_text()
    result = either.loaded("from ._shared import multiply\n", {"_shared.py": shared})
    assert result["tools"] == []


def test_langchain_itself(bare: Hosted) -> None:
    result = bare.loaded('from langchain.tools import tool\n@tool\ndef f(a: int) -> int:\n    """F."""\n    return a\n')
    assert [tool["name"] for tool in result["tools"]] == ["f"]
    assert bare.result("f", {"a": 1}) == 1


def test_other_parts_are_missing(bare: Hosted) -> None:
    error = bare.load("from langchain_core.messages import HumanMessage\n")["error"]
    assert error["data"]["errorType"] == "ImportError"
    assert "langchain-core" in error["data"]["hint"]


def test_both_decorators_in_one_file(either: Hosted) -> None:
    text = '''
from langchain_core.tools import tool as chained
from toolcrib import tool

@tool
def ours(a: int) -> int:
    """Ours."""
    return theirs.invoke({"a": a}) + 1

@chained
def theirs(a: int) -> int:
    """Theirs."""
    return a
'''
    assert [tool["name"] for tool in either.loaded(text)["tools"]] == ["ours", "theirs"]
    assert either.result("ours", {"a": 1}) == 2
