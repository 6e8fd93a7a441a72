"""Plain functions: calls side by side in threads, and one that hangs holds up nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hosting import Hosted

HEAD = """from toolcrib import tool, Context
import asyncio, os, sys, threading, time
"""
MEETING = (
    HEAD
    + '''
barrier = threading.Barrier(16)

@tool
def meet(n: int, ctx: Context) -> int:
    """Waits until all are there."""
    print("call", n, end=" ")
    ctx.progress(n)
    barrier.wait()
    print("met")
    return n

@tool
def where() -> bool:
    """Whether it runs on the main thread."""
    return threading.current_thread() is threading.main_thread()

@tool
def hang(ctx: Context) -> str:
    """Never ends, and can't be interrupted elsewhere than on the main thread."""
    ctx.progress(1)
    threading.Event().wait()
    return "never"

@tool
def spin(ctx: Context) -> str:
    """Never ends, and can be interrupted."""
    ctx.progress(1)
    try:
        while True:
            pass
    finally:
        ctx.log("info", f"tidy {bool(ctx.cancelled)}")

@tool
def echo(text: str) -> str:
    """Gives it back."""
    return text

@tool
def wrapped(n: int) -> int:
    """A plain function around an async one."""
    async def inner() -> int:
        await asyncio.sleep(0.001)
        barrier.wait()
        return n
    return inner()
'''
)
ASYNC = '''
@tool
async def other() -> str:
    """Makes the file one with async tools."""
    return "other"
'''


@pytest.fixture(params=["plain", "with async"])
def text(request: pytest.FixtureRequest) -> str:
    return MEETING if request.param == "plain" else MEETING + ASYNC


def test_sixteen_calls_meet(host: Hosted, text: str) -> None:
    assert host.loaded(text)["concurrency"] == 16
    for _ in range(3):
        calls = [host.start("meet", {"n": n}) for n in range(16)]
        assert [host.answer(call)["result"] for call in calls] == list(range(16))
        told = [notice["params"] for notice in host.notices if notice["method"] == "progress"]
        assert sorted(one["progress"] for one in told) == list(range(16))
        assert all(one["id"] == calls[one["progress"]] for one in told)
        printed = {notice["params"]["id"]: notice["params"] for notice in host.notices if notice["method"] == "log"}
        assert {call: one["message"] for call, one in printed.items()} == {
            call: f"call {n} met" for n, call in enumerate(calls)
        }
        assert all("level" not in one for one in printed.values())
        host.notices.clear()


def test_more_calls_than_may_run_wait_their_turn(host: Hosted, text: str) -> None:
    host.loaded(text)
    calls = [host.start("meet", {"n": n}) for n in range(48)]
    assert host.ask("health", {})["result"]["status"] == "healthy"
    assert [host.answer(call)["result"] for call in calls] == list(range(48))


def test_calls_that_hang_hold_up_nobody(host: Hosted, text: str) -> None:
    host.loaded(text)
    for _ in range(15):
        host.start("hang")
        host.notice()
    for n in range(200):
        assert host.result("echo", {"text": str(n)}) == str(n)
    assert host.ask("health", {})["result"]["status"] == "healthy"


def test_a_lone_call_is_on_the_main_thread_also_after_many(host: Hosted) -> None:
    host.loaded(MEETING)
    assert host.result("where") is True
    for call in [host.start("meet", {"n": n}) for n in range(16)]:
        host.answer(call)
    assert [host.result("where") for _ in range(20)] == [True] * 20


def test_each_call_is_cancelled_by_itself(host: Hosted, text: str) -> None:
    host.loaded(text)
    for _ in range(3):
        calls = []
        for _ in range(4):
            calls.append(host.start("spin"))
            host.notice()
        for call in (calls[2], calls[0], calls[3], calls[1]):
            host.notify("cancel", {"id": call})
            assert host.notice()["params"]["message"] == "tidy True"
            assert host.answer(call)["error"]["message"] == "cancelled"
            assert host.result("echo", {"text": "alive"}) == "alive"


def test_a_cancelled_call_that_is_blocked_leaves_the_others_alone(host: Hosted, text: str) -> None:
    host.loaded(text)
    first, second = host.start("hang"), host.start("hang")
    host.notice(), host.notice()
    for call in (first, second):
        host.notify("cancel", {"id": call})
    assert [host.result("echo", {"text": str(n)}) for n in range(50)] == [str(n) for n in range(50)]


def test_cancelled_before_it_began(host: Hosted, tmp_path: Path) -> None:
    door = tmp_path / "door"
    os.mkfifo(door)
    host.loaded(
        HEAD
        + f'@tool(concurrency=1)\ndef f(n: int, ctx):\n    """F."""\n    ctx.progress(1)\n    if n == 0:\n        open({str(door)!r}).close()\n    return n\n'
    )
    calls = [host.start("f", {"n": n}) for n in range(3)]
    host.notice()
    host.notify("cancel", {"id": calls[1]})
    assert host.ask("health", {})["result"]["status"] == "healthy"
    door.write_text("")
    assert [host.answer(call).get("result") for call in calls] == [0, None, 2]


def test_one_at_a_time(host: Hosted) -> None:
    text = '''
running = []

@tool(concurrency=1)
def alone(n: int) -> list:
    """One at a time, where the file was loaded."""
    running.append(n)
    time.sleep(0.02)
    there = list(running)
    running.remove(n)
    return [there == [n], threading.current_thread() is threading.main_thread()]
'''
    assert host.loaded(HEAD + text)["concurrency"] == 1
    calls = [host.start("alone", {"n": n}) for n in range(10)]
    assert [host.answer(call)["result"] for call in calls] == [[True, True]] * 10


@pytest.mark.parametrize("value", ["0", "'1'", "True", "1.5"])
def test_a_concurrency_that_is_none(host: Hosted, value: str) -> None:
    loaded = host.loaded(HEAD + f'@tool(concurrency={value})\ndef f():\n    """F."""\n')
    assert "concurrency is a number of calls" in loaded["problems"][0]["message"]


def test_awaitables_on_every_thread(host: Hosted, text: str) -> None:
    if text is not MEETING:
        pytest.skip("on the one loop of such a file a barrier would wait for ever")
    host.loaded(text)
    calls = [host.start("wrapped", {"n": n}) for n in range(16)]
    assert [host.answer(call)["result"] for call in calls] == list(range(16))


def test_many_calls_of_every_length(host: Hosted, text: str) -> None:
    host.loaded(text + '@tool\ndef nap(ms: int) -> int:\n    """Sleeps."""\n    time.sleep(ms / 1000)\n    return ms\n')
    lengths = [(n * 7) % 13 for n in range(400)]
    calls = [host.start("nap", {"ms": ms}) for ms in lengths]
    assert [host.answer(call)["result"] for call in calls] == lengths


def test_cancels_at_any_time_hit_no_other_call(host: Hosted, text: str) -> None:
    host.loaded(
        text
        + '@tool\ndef nap(n: int) -> int:\n    """Works a while."""\n    for _ in range(n * 50): time.sleep(0)\n    return n\n'
    )
    for round in range(20):
        calls = [host.start("nap", {"n": n}) for n in range(16)]
        for call in calls[round % 3 :: 3]:
            host.notify("cancel", {"id": call})
        kept = [call for call in calls if call not in calls[round % 3 :: 3]]
        for call in calls:
            answer = host.answer(call)
            if call in kept:
                assert answer.get("result") == calls.index(call), answer
            else:
                assert answer.get("result") == calls.index(call) or answer["error"]["message"] == "cancelled"


def test_end_of_stdin_while_calls_run(host: Hosted, text: str) -> None:
    host.loaded(text)
    for _ in range(3):
        host.start("hang")
        host.notice()
    assert host.process.stdin
    host.process.stdin.close()
    assert host.process.wait(30) == 0


def test_a_forked_child_of_any_thread_does_not_answer(host: Hosted) -> None:
    body = "    pid = os.fork()\n    print('hi')\n    if pid:\n        os.waitpid(pid, 0)\n    return 'once'"
    host.loaded(MEETING + f'@tool\ndef fork() -> str:\n    """F."""\n{body}\n')
    host.start("hang"), host.notice()
    for _ in range(5):
        assert host.result("fork") == "once"
    assert not host.answers


def test_prints(host: Hosted) -> None:
    body = "print('a', 'b')\n    print('one\\ntwo')\n    print()\n    sys.stdout.write('half')\n    sys.stdout.flush()\n    print('x' * 200000)\n    print('end', end='')\n    return 'quiet'"
    host.loaded(HEAD + f'print("loading")\n@tool\ndef f():\n    """F."""\n    {body}\n')
    assert host.result("f") == "quiet"
    texts = [notice["params"]["message"] for notice in host.notices]
    assert texts[:5] == ["a b", "one", "two", "", "half"]
    assert "".join(texts[5:-1]) == "x" * 200000
    assert texts[-1] == "end"
    assert host.errors() == "loading\n"
