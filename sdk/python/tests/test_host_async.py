"""Files with async tools: calls side by side."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hosting import Hosted

HEAD = "from toolcrib import tool, Context\nimport asyncio, sys, threading, time\n"
MEETING = (
    HEAD
    + '''
guests = []
full = asyncio.Event()

@tool
async def meet(n: int, ctx: Context) -> int:
    """Waits for all."""
    ctx.progress(n)
    guests.append(n)
    if len(guests) == 16:
        full.set()
    await full.wait()
    return n

@tool
async def forever(ctx: Context) -> str:
    """Waits for nobody."""
    try:
        ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        ctx.log("info", f"tidy {bool(ctx.cancelled)}")

@tool
def plain(ctx: Context) -> list:
    """A plain one."""
    return [threading.current_thread() is threading.main_thread(), threading.current_thread().name]

@tool
def busy(ctx: Context) -> str:
    """Never ends."""
    ctx.progress(1)
    while True:
        pass

@tool
async def quick(a: str = "x") -> str:
    """Quick."""
    return a
'''
)


def test_side_by_side(host: Hosted) -> None:
    assert host.loaded(MEETING)["concurrency"] == 16
    calls = [host.start("meet", {"n": n}) for n in range(16)]
    assert [host.answer(call)["result"] for call in calls] == list(range(16))


def test_all_on_the_right_threads(host: Hosted) -> None:
    host.loaded(MEETING)
    assert host.result("plain") == [False, "toolcrib-calls"]
    assert host.result("plain") == [False, "toolcrib-calls"]


def test_cancel_of_an_async_call(host: Hosted) -> None:
    host.loaded(MEETING)
    call = host.start("forever")
    host.notice()
    host.notify("cancel", {"id": call})
    assert host.notice()["params"]["message"] == "tidy True"
    assert host.answer(call)["error"]["message"] == "cancelled"
    assert host.result("quick") == "x"


def test_cancel_of_a_plain_call(host: Hosted) -> None:
    host.loaded(MEETING)
    for _ in range(5):
        call = host.start("busy")
        host.notice()
        assert host.result("plain") == [False, "toolcrib-calls"]
        assert host.result("quick") == "x"
        host.notify("cancel", {"id": call})
        assert host.answer(call)["error"]["message"] == "cancelled"
        assert host.result("plain") == [False, "toolcrib-calls"]


def test_health_while_the_loop_is_blocked(host: Hosted, tmp_path: Path) -> None:
    door = tmp_path / "door"
    os.mkfifo(door)
    host.loaded(
        HEAD + f'@tool\nasync def f(ctx):\n    """F."""\n    ctx.progress(1)\n    return open({str(door)!r}).read()\n'
    )
    call = host.start("f")
    host.notice()
    assert host.ask("health", {})["result"]["status"] == "healthy"
    door.write_text("open")
    assert host.answer(call)["result"] == "open"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('no')", "no"),
        ("sys.exit(2)", "the tool called sys.exit(2)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("await asyncio.wait_for(asyncio.Event().wait(), 0.001)", "TimeoutError"),
        ("return object()", "a value of type object has no JSON form"),
        ("raise asyncio.CancelledError", "cancelled"),
    ],
)
def test_failures(host: Hosted, body: str, words: str) -> None:
    host.loaded(
        HEAD
        + f'@tool\nasync def f():\n    """F."""\n    {body}\n@tool\nasync def ok():\n    """OK."""\n    return "alive"\n'
    )
    error = host.error("f")
    assert error["code"] == -32001
    assert words in error["message"]
    assert host.result("ok") == "alive"


def test_a_task_that_exits_does_not_end_the_others(host: Hosted) -> None:
    body = "async def leave():\n        sys.exit(1)\n    task = asyncio.ensure_future(leave())\n    await asyncio.sleep(0)\n    await asyncio.sleep(0)\n    return 'stayed'"
    host.loaded(HEAD + f'@tool\nasync def f():\n    """F."""\n    {body}\n')
    assert host.result("f") == "stayed"
    assert host.result("f") == "stayed"


def test_bad_params(host: Hosted) -> None:
    host.loaded(MEETING)
    assert host.error("quick", {"a": 1})["code"] == -32602
    assert host.error("nobody")["code"] == -32602


def test_init_shares_the_loop(host: Hosted) -> None:
    text = (
        HEAD
        + '''
async def start(init):
    return {"loop": asyncio.get_running_loop()}

@tool(init=start)
async def f(ctx: Context):
    """F."""
    return ctx.init["loop"] is asyncio.get_running_loop()
'''
    )
    host.loaded(text)
    assert host.result("f") is True


def test_end_of_stdin(host: Hosted) -> None:
    host.loaded(MEETING)
    host.start("forever")
    host.notice()
    assert host.process.stdin
    host.process.stdin.close()
    assert host.process.wait(30) == 0


def test_many_calls_at_once(host: Hosted) -> None:
    host.loaded(MEETING)
    calls = [host.start("quick" if n % 2 else "plain") for n in range(500)]
    assert all("result" in host.answer(call) for call in calls)


def test_a_forked_child_does_not_answer(host: Hosted) -> None:
    body = "import os\n    pid = os.fork()\n    if pid:\n        os.waitpid(pid, 0)\n    return 'once'"
    host.loaded(HEAD + f'@tool\nasync def f():\n    """F."""\n    {body}\n@tool\ndef g():\n    """G."""\n    {body}\n')
    for tool in ("f", "g", "f"):
        assert host.result(tool) == "once"
    assert not host.answers


def test_print_in_an_async_tool(host: Hosted) -> None:
    host.loaded(HEAD + '@tool\nasync def f():\n    """F."""\n    print("loud")\n    return "quiet"\n')
    assert host.result("f") == "quiet"
    assert host.notice()["params"] == {"id": host.count, "message": "loud"}
