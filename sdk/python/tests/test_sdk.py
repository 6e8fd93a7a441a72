"""The decorator, the context, and docstrings."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolcrib import Context, noop_context, tool
from toolcrib.docstring import parse


def test_the_function_stays_what_it_was() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    @tool("other", read_only=True)
    async def wait(a: int) -> int:
        """Waits."""
        return a

    assert add(1, 2) == 3
    assert asyncio.run(wait(4)) == 4
    assert add.__name__ == "add"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"read_onyl": True}, r"@tool has no option 'read_onyl'; did you mean 'read_only'\?"),
        ({"zzz": True}, r"@tool has no option 'zzz': it takes name, description"),
        ({"read_only": "yes"}, "read_only is True or False, not 'yes'"),
        ({"tags": "a"}, "tags is a list of strings"),
        ({"timeout_ms": -1}, "timeout_ms is a number of milliseconds above 0"),
        ({"metadata": []}, "metadata is a dict"),
        ({"meta": []}, "meta is a dict"),
        ({"icons": [{"sizes": []}]}, "icons is a list of dicts, each with a string 'src'"),
        (
            {"permissions": {"can_red_files": True}},
            r"permissions has no key 'can_red_files'; did you mean 'can_read_files'\?",
        ),
        ({"sandbox": []}, "sandbox is a dict"),
        ({"init": 3}, "init is a function"),
        ({"name": 3}, "name is a string"),
        ({"output_schema": 3}, "output_schema is a JSON Schema"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tool(**options)(lambda: 1)  # type: ignore[call-overload]


def test_not_a_function() -> None:
    with pytest.raises(TypeError, match="@tool decorates a function, not 3"):
        tool(3)  # type: ignore[call-overload]


def test_noop_context_records() -> None:
    ctx = noop_context(directory="/srv", timeout_ms=1000, init={"a": 1})
    ctx.metadata(title="Reading", file="a")
    ctx.progress(1, total=2, message="half")
    ctx.log("warning", "careful")
    assert ctx.told == [
        ("progress", {"title": "Reading", "data": {"file": "a"}}),
        ("progress", {"progress": 1, "total": 2, "message": "half"}),
        ("log", {"level": "warn", "message": "careful"}),
    ]
    assert ctx.titles == ["Reading"]
    assert (ctx.directory, ctx.agent, ctx.call_id, ctx.init) == ("/srv", "test", "call", {"a": 1})
    assert ctx.deadline is not None
    with pytest.raises(ValueError, match="there is no log level 'loud'"):
        ctx.log("loud", "x")


def test_other_names_of_the_context() -> None:
    ctx = Context({"executionId": "c", "runId": "s", "workingDir": "/d"}, lambda kind, fields: None)
    assert (ctx.call_id, ctx.session_id, ctx.directory, ctx.message_id) == ("c", "s", "/d", "")
    assert ctx.deadline is None


def test_cancelled_is_a_flag_and_an_event() -> None:
    ctx = noop_context()
    assert not ctx.cancelled
    assert not ctx.cancelled.wait(0)
    waiting = threading.Thread(target=ctx.cancelled.wait)
    waiting.start()
    ctx.cancelled.set()
    waiting.join(30)
    assert not waiting.is_alive()
    assert ctx.cancelled
    assert ctx.cancelled.wait(30)


GOOGLE = """Finds files.

    It looks everywhere, and
    takes its time.

    Args:
        pattern (str): What to look for,
            as a glob: `*.py`.
        limit (Optional[Dict[str, int]], optional): How many.
        **more: Anything.

    Returns:
        str: The files.
    """
NUMPY = """Finds files
    quickly.

    Parameters
    ----------
    pattern : str
        What to look for,
        as a glob.
    first, last : int, optional
        Where to look.

    Returns
    -------
    limit : str
        The files.
    """
REST = """
    Finds files.

    :param pattern: What to look for,
        as a glob.
    :param int limit: How many.
    :returns: The files.
    :rtype: str
    """
EPYTEXT = """Finds files.
    @param pattern: What to look for.
    @return: files"""


@pytest.mark.parametrize(
    ("text", "summary", "parameters"),
    [
        ("Finds.", "Finds.", {}),
        ("", "", {}),
        (
            GOOGLE,
            "Finds files.",
            {"pattern": "What to look for, as a glob: `*.py`.", "limit": "How many.", "more": "Anything."},
        ),
        (
            NUMPY,
            "Finds files quickly.",
            {"pattern": "What to look for, as a glob.", "first": "Where to look.", "last": "Where to look."},
        ),
        (REST, "Finds files.", {"pattern": "What to look for, as a glob.", "limit": "How many."}),
        (EPYTEXT, "Finds files.", {"pattern": "What to look for."}),
        ("Finds.\n\nNote: this\nis text.\n\nArgs: none here", "Finds.", {}),
        ("\n    Args:\n        a: b", "", {"a": "b"}),
    ],
)
def test_docstrings(text: str, summary: str, parameters: dict[str, str]) -> None:
    assert parse(text) == (summary, parameters)
