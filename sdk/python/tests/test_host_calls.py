"""Calls: arguments, results, failures, and what else goes over the pipes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hosting import CONTEXT, FILE, Hosted

HEAD = "from toolcrib import tool, Context, Result, Attachment\nimport os, sys, time, threading\n"


def one(body: str, parameters: str = "", head: str = "") -> str:
    """A file with one tool `f`; the body is its lines."""
    lines = "\n".join("    " + line for line in body.split("\n"))
    return f'{HEAD}{head}\n@tool\ndef f({parameters}):\n    """F."""\n{lines}\n'


def test_values_are_converted(host: Hosted) -> None:
    head = "import datetime, enum, pathlib\nfrom dataclasses import dataclass\nclass C(enum.Enum):\n    A = 'a'\n@dataclass\nclass P:\n    x: int\n"
    body = "return [type(v).__name__ for v in (c, p, d, q, s, b)]"
    host.loaded(one(body, "c: C, p: P, d: datetime.date, q: pathlib.Path, s: set, b: bytes = b'x'", head))
    given = {"c": "a", "p": {"x": 1}, "d": "2024-05-01", "q": "/a", "s": [1]}
    assert host.result("f", given)[:3] == ["C", "P", "date"]
    error = host.error("f", {**given, "p": {"x": "1"}})
    assert error == {"code": -32602, "message": "`p.x`: expected an integer, got a string ('1')"}


def test_defaults_are_the_functions_own(host: Hosted) -> None:
    host.loaded(one("return a is b", "a=sys, b=sys"))
    assert host.result("f") is True


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"tool": "g", "input": {}}, "there is no tool 'g' in this file; it has: f"),
        ({"tool": "f", "input": []}, "params.input is not an object"),
        ([], "params is not an object"),
        ({"tool": "f", "input": {"b": 1}}, "`b`: there is no such parameter"),
        ({"tool": "f", "input": {}}, "`a`: it is missing"),
    ],
)
def test_bad_params(host: Hosted, params: Any, words: str) -> None:
    host.loaded(one("return a", "a: int"))
    error = host.ask("execute", params)["error"]
    assert error["code"] == -32602
    assert words in error["message"]


def test_the_only_tool_needs_no_name(host: Hosted) -> None:
    host.loaded(one("return 'x'"))
    assert host.ask("execute", {"input": {}})["result"] == "x"


RESULTS: list[tuple[str, Any]] = [
    ("return 'a'", "a"),
    ("return None", ""),
    ("pass", ""),
    ("return 3", 3),
    ("return [1, (2, 3), {4}]", [1, [2, 3], [4]]),
    ("return {'output': 'a', 'title': 't'}", {"output": "a", "title": "t"}),
    ("return Result('a', is_error=True)", {"output": "a", "isError": True}),
    ("return float('nan')", None),
    ("return [float('-inf'), 2**70]", [None, 2**70]),
    ("return '\\u2028\\n\\x00\\U0001f600'", "\u2028\n\x00\U0001f600"),
    ("return '\\ud83d\\ude00 \\ud800'", "\U0001f600 \ufffd"),
    (
        "return {'content': [{'type': 'text', 'text': 'a', 'annotations': {'priority': 1.0}},"
        " {'type': 'audio', 'data': b'hi', 'mimeType': 'audio/wav'}], '_meta': {'a/b': 2**70}}",
        {
            "content": [
                {"type": "text", "text": "a", "annotations": {"priority": 1.0}},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            ],
            "_meta": {"a/b": 2**70},
        },
    ),
    ("return {'a': b'hi'}", {"a": "aGk="}),
    (
        "return b'hi'",
        {
            "output": "2 bytes, application/octet-stream",
            "attachments": [{"type": "file", "mimeType": "application/octet-stream", "data": "aGk="}],
        },
    ),
]


@pytest.mark.parametrize(("body", "expected"), RESULTS, ids=[body for body, _ in RESULTS])
def test_results(host: Hosted, body: str, expected: Any) -> None:
    host.loaded(one(body))
    assert host.result("f") == expected


FAILURES: list[tuple[str, str]] = [
    ("raise ValueError('too many')", "too many"),
    ("raise KeyError('x')", "KeyError: 'x'"),
    ("raise Exception", "Exception"),
    ("1 / 0", "ZeroDivisionError: division by zero"),
    ("sys.exit(3)", "the tool called sys.exit(3)"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise GeneratorExit", "GeneratorExit"),
    ("def r(): r()\nr()", "RecursionError: maximum recursion depth exceeded"),
    ("return object()", "a value of type object has no JSON form"),
    ("x = []\nx.append(x)\nreturn x", "the result is too deeply nested, or holds itself"),
    ("class E(Exception):\n    pass\nraise E('own words')", "own words"),
    ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E('x')", "f.<locals>.E"),
    ("open('/no/such/file')", "No such file or directory: '/no/such/file'"),
    ("raise ConnectionRefusedError(111, 'Connection refused')", "Connection refused"),
    ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1/')", "Connection refused"),
    ("raise MemoryError", "MemoryError"),
    ("assert 1 == 2, 'no'", "no"),
]


@pytest.mark.parametrize(("body", "words"), FAILURES, ids=[body for body, _ in FAILURES])
def test_failures(host: Hosted, body: str, words: str) -> None:
    host.loaded(one(body) + '@tool\ndef ok():\n    """OK."""\n    return "alive"\n')
    error = host.error("f")
    assert error["code"] == -32001
    assert words in error["message"]
    assert "toolcrib_host" not in error["data"]["traceback"]
    assert host.result("ok") == "alive"


def test_system_calls(host: Hosted) -> None:
    host.loaded(one("open('/no/such/file')"))
    data = host.error("f")["data"]
    assert (data["errno"], data["path"]) == ("ENOENT", "/no/such/file")


def test_traceback_has_the_users_frames_only(host: Hosted) -> None:
    body = "import json\ndef hook(pairs):\n    return inner()\njson.loads('{}', object_pairs_hook=hook)"
    text = one(body, head="from _shared import inner")
    host.load(
        text,
        {
            "_shared.py": "import json\ndef inner():\n    try:\n        json.loads('nope')\n    except ValueError as e:\n        raise RuntimeError('broken') from e\n"
        },
    )
    error = host.error("f")
    assert error["message"] == "broken"
    traceback = error["data"]["traceback"]
    assert "direct cause" in traceback
    last = traceback.rpartition("direct cause")[2]
    files = [line.split('"')[1] for line in last.splitlines() if line.startswith("  File")]
    assert files == [FILE, FILE, str(Path(FILE).with_name("_shared.py"))]
    assert "raise RuntimeError('broken') from e" in last
    assert "json" in traceback.partition("direct cause")[0]  # below the user's last frame
    assert traceback.endswith("RuntimeError: broken")


def test_endless_recursion_has_a_short_traceback(host: Hosted) -> None:
    host.loaded(one("def r(): r()\nr()"))
    assert len(host.error("f")["data"]["traceback"].splitlines()) < 20


def test_context(host: Hosted) -> None:
    body = "ctx.metadata(title='T', n=1)\nctx.progress(1, 2, 'half')\nctx.log('info', 'line')\nreturn [ctx.call_id, ctx.session_id, ctx.message_id, ctx.agent, ctx.profile, ctx.directory, 0 < ctx.deadline - time.time() < 31, bool(ctx.cancelled)]"
    host.loaded(one(body, "ctx: Context"))
    assert host.result("f") == ["c-1", "s-1", "m-1", "claude-code", "default", "/crib/project", True, False]
    assert [(notice["method"], notice["params"]) for notice in host.notices] == [
        ("progress", {"title": "T", "data": {"n": 1}, "id": host.count}),
        ("progress", {"progress": 1, "total": 2, "message": "half", "id": host.count}),
        ("log", {"level": "info", "message": "line"}),
    ]


LOUD = [
    "print('loud')",
    "os.system('echo loud')",
    "os.write(1, b'loud\\n')",
    "sys.__stdout__.write('loud\\n')",
    "import subprocess; subprocess.run(['echo', 'loud'])",
    "import ctypes; libc = ctypes.CDLL(None); libc.puts(b'loud'); libc.fflush(None)",
    "threading.Thread(target=lambda: print('loud')).start()",
    "sys.stdout.buffer.write(b'loud\\n'); sys.stdout.flush()",
]


@pytest.mark.parametrize("line", LOUD)
def test_stdout_is_not_the_protocols(host: Hosted, line: str) -> None:
    host.loaded(one(line + "\nreturn 'quiet'", head=line))
    assert host.result("f") == "quiet"
    assert host.ask("health", {})["result"] == {"status": "healthy"}
    assert host.errors().count("loud") >= 1


def test_much_output(host: Hosted) -> None:
    host.loaded(one("for _ in range(20000):\n    print('x' * 100)\nreturn 'done'"))
    assert host.result("f") == "done"


def test_stdin_is_empty(host: Hosted) -> None:
    host.loaded(
        one(
            "import subprocess\nreturn [sys.stdin.read(), subprocess.run(['cat'], capture_output=True, text=True).stdout]"
        )
    )
    assert host.result("f") == ["", ""]


def test_a_forked_child_does_not_answer(host: Hosted) -> None:
    host.loaded(one("pid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nreturn 'once'"))
    assert host.result("f") == "once"
    assert host.result("f") == "once"
    assert not host.answers


def test_sync_calls_are_on_the_main_thread(host: Hosted) -> None:
    host.loaded(
        one(
            "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nreturn threading.current_thread() is threading.main_thread()"
        )
    )
    assert host.result("f") is True


def test_health_during_a_call(host: Hosted, tmp_path: Path) -> None:
    door = tmp_path / "door"
    os.mkfifo(door)
    host.loaded(one(f"ctx.progress(1)\nwith open({str(door)!r}) as file:\n    return file.read()", "ctx"))
    call = host.start("f")
    assert host.notice()["params"]["progress"] == 1
    for _ in range(3):
        assert host.ask("health", {})["result"]["status"] == "healthy"
    door.write_text("open")
    assert host.answer(call)["result"] == "open"


def test_calls_that_wait_their_turn(host: Hosted, tmp_path: Path) -> None:
    door = tmp_path / "door"
    os.mkfifo(door)
    text = one(f"ctx.progress(1)\nif n == 0:\n    open({str(door)!r}).close()\nreturn n", "n: int, ctx")
    host.loaded(text.replace("@tool\n", "@tool(concurrency=1)\n"))
    calls = [host.start("f", {"n": n}) for n in range(50)]
    host.notice()
    host.notify("cancel", {"id": calls[7]})
    assert host.ask("health", {})["result"]["status"] == "healthy"
    door.write_text("")
    answers = [host.answer(call) for call in calls]
    assert answers[7]["error"]["message"] == "cancelled"
    assert [answer.get("result") for answer in answers] == [None if n == 7 else n for n in range(50)]


CANCELLED = [
    "time.sleep(600)",
    "while True:\n    pass",
    "import subprocess\nsubprocess.run(['sleep', '600'])",
    "threading.Event().wait()",
]


@pytest.mark.parametrize("body", CANCELLED)
def test_cancel(host: Hosted, body: str) -> None:
    host.loaded(one(f"ctx.progress(1)\n{body}", "ctx") + '@tool\ndef ok():\n    """OK."""\n    return "alive"\n')
    call = host.start("f")
    host.notice()
    host.notify("cancel", {"id": call})
    error = host.answer(call)["error"]
    assert (error["code"], error["message"]) == (-32001, "cancelled")
    assert host.result("ok") == "alive"
    host.notify("cancel", {"id": call})  # too late, and harmless
    assert host.result("ok") == "alive"


def test_cancel_lets_the_tool_tidy_up(host: Hosted) -> None:
    host.loaded(
        one(
            "try:\n    ctx.progress(1)\n    time.sleep(600)\nfinally:\n    ctx.log('info', f'tidy {bool(ctx.cancelled)}')",
            "ctx",
        )
    )
    call = host.start("f")
    host.notice()
    host.notify("cancel", {"id": call})
    assert host.notice()["params"]["message"] == "tidy True"
    assert host.answer(call)["error"]["message"] == "cancelled"


def test_cancel_while_much_is_told(host: Hosted) -> None:
    host.loaded(one("while True:\n    ctx.log('info', 'x' * 100000)", "ctx"))
    for _ in range(10):
        call = host.start("f")
        host.notice()
        host.notify("cancel", {"id": call})
        assert host.answer(call)["error"]["message"] == "cancelled"  # every line was whole
        host.notices.clear()


def test_cancel_of_nothing(host: Hosted) -> None:
    host.loaded(one("return 'x'"))
    for params in ({"id": 99}, {}, None, {"id": None}, {"id": []}, []):
        host.notify("cancel", params)
    assert host.result("f") == "x"


def test_protocol_errors(host: Hosted) -> None:
    assert host.ask("tea", {})["error"]["code"] == -32601
    host.write(b"tea\n")
    assert host.answer(None)["error"]["code"] == -32700
    host.write(b"\xff\n")
    assert host.answer(None)["error"]["code"] == -32700
    host.write(b"[1]\n")
    assert host.answer(None)["error"]["code"] == -32600
    host.write(b'{"id": 5}\n')
    assert host.answer(5)["error"]["code"] == -32600
    host.write(b"[" * 200_000 + b"\n")
    assert host.answer(None)["error"]["code"] == -32700
    host.write(b"\n  \n")
    host.notify("unknown", {})
    host.write(b'{"jsonrpc": "2.0", "id": 77, "result": {}}\n')
    assert host.ask("execute", {"tool": "f", "input": {}})["error"]["code"] == -32602
    assert host.ask("health", {})["result"]["status"] == "healthy"


@pytest.mark.parametrize("identity", ["a", 'ü\u2028"', 0, 7, 2**60])
def test_ids_come_back(host: Hosted, identity: Any) -> None:
    host.loaded(one("return 'x'"))
    assert host.call("f", {}, identity)["id"] == identity


def test_large_argument(host: Hosted) -> None:
    host.loaded(one("return [len(a), a[-1]]", "a: str"))
    assert host.result("f", {"a": "ü" * 5_000_000}) == [5_000_000, "ü"]


def test_large_result(host: Hosted) -> None:
    host.loaded(one("return 'x' * n", "n: int"))
    assert len(host.result("f", {"n": 10_000_000})) == 10_000_000


def test_line_separators(host: Hosted) -> None:
    host.loaded(one("return a", "a: str"))
    text = "a\u2028b\u2029c\x85d\x0be"
    message = {"jsonrpc": "2.0", "id": 5, "method": "execute", "params": {"tool": "f", "input": {"a": text}}}
    host.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    assert host.answer(5)["result"] == text


def test_deep_values(host: Hosted) -> None:
    host.loaded(one("return a", "a: list"))
    value: Any = []
    for _ in range(300):
        value = [value]
    assert host.result("f", {"a": value}) == value


def test_pieces_of_lines(host: Hosted) -> None:
    host.loaded(one("return 'x'"))
    line = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 5,
            "method": "execute",
            "params": {"tool": "f", "input": {}, "context": CONTEXT},
        }
    ).encode()
    for byte in line[:40]:
        host.write(bytes([byte]))
    host.write(line[40:] + b"\n" + line[:9])
    assert host.answer(5)["result"] == "x"
    host.write(line[9:] + b"\n")
    assert host.answer(5)["result"] == "x"


def test_exit_of_the_process(host: Hosted) -> None:
    host.loaded(one("os._exit(5)"))
    host.start("f")
    assert host.process.wait(30) == 5


def test_end_of_stdin(host: Hosted) -> None:
    host.loaded(one("return 1", head="import atexit\natexit.register(lambda: print('tidy'))\n"))
    host.result("f")
    assert host.process.stdin
    host.process.stdin.close()
    assert host.process.wait(30) == 0
    assert "tidy" in host.errors()


@pytest.mark.parametrize(
    "body",
    [
        "ctx.progress(1)\ntime.sleep(600)",
        "threading.Thread(target=lambda: time.sleep(600)).start()\nctx.progress(1)",
    ],
)
def test_end_of_stdin_while_something_runs(host: Hosted, body: str) -> None:
    host.loaded(one(body, "ctx"))
    host.start("f")
    host.notice()
    assert host.process.stdin
    host.process.stdin.close()
    assert host.process.wait(30) == 0


def test_sigterm(host: Hosted) -> None:
    host.loaded(one("return 1"))
    host.process.terminate()
    assert host.process.wait(30) == -signal.SIGTERM


def test_awaitables_of_plain_functions(host: Hosted) -> None:
    host.loaded(one("async def inner():\n    return 'awaited'\nreturn inner()"))
    assert host.result("f") == "awaited"
