"""Drives a real host over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import Any, Optional

SOURCE = Path(__file__).resolve().parent.parent / "src"
HOST = SOURCE / "toolcrib_host"
FILE = "/crib/project/tools/greet.py"
DIRECTORY = "/crib/project"
CONTEXT = {
    "callId": "c-1",
    "sessionId": "s-1",
    "messageId": "m-1",
    "agent": "claude-code",
    "profile": "default",
    "directory": DIRECTORY,
    "timeout": 30000,
}


class Hosted:
    """A host process. Texts are dedented; the file need not exist."""

    def __init__(self, *, bare: bool = False, env: Optional[dict[str, str]] = None) -> None:
        self.stderr = tempfile.TemporaryFile()
        arguments = [sys.executable, "-X", "utf8"]
        if bare:
            arguments.append("-S")  # no installed packages
        self.process = subprocess.Popen(
            [*arguments, str(HOST)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        )
        # A host that hangs is ended, and the test that waits for it fails.
        self.limit = threading.Timer(120, self.process.kill)
        self.limit.daemon = True
        self.limit.start()
        self.count = 0
        self.notices: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}

    def __enter__(self) -> Hosted:
        return self

    def __exit__(self, *_: object) -> None:
        self.limit.cancel()
        self.process.kill()
        self.process.wait()
        assert self.process.stdin and self.process.stdout
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.stderr.close()

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message; every line of stdout must be one."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(self.errors())
        message = json.loads(line, parse_constant=not_json)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def send(self, method: str, params: Any, identity: Any = None) -> Any:
        if identity is None:
            self.count += 1
            identity = self.count
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        return identity

    def notify(self, method: str, params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def answer(self, identity: Any) -> dict[str, Any]:
        """The answer to a request; what else comes meanwhile is kept."""
        while identity not in self.answers:
            message = self.read()
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.notices.append(message)
        return self.answers.pop(identity)

    def notice(self) -> dict[str, Any]:
        """The next notification."""
        while not self.notices:
            message = self.read()
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.notices.append(message)
        return self.notices.pop(0)

    def ask(self, method: str, params: Any, identity: Any = None) -> dict[str, Any]:
        return self.answer(self.send(method, params, identity))

    def load(
        self, text: str, others: Optional[dict[str, str]] = None, file: str = FILE, directory: str = DIRECTORY
    ) -> dict[str, Any]:
        texts = {file: textwrap.dedent(text)}
        for name, other in (others or {}).items():
            texts[str(Path(file).parent / name)] = textwrap.dedent(other)
        script = {"file": file, "directory": directory, "texts": texts}
        return self.ask("initialize", {"protocolVersion": "1.0", "supported": ["1.0", "1.1"], "script": script})

    def loaded(self, text: str, others: Optional[dict[str, str]] = None) -> dict[str, Any]:
        """The result of `initialize`, which must be one."""
        answer = self.load(text, others)
        assert "result" in answer, answer
        return dict(answer["result"])

    def start(self, tool: str, given: Any = None, identity: Any = None) -> Any:
        params = {"tool": tool, "input": {} if given is None else given, "context": CONTEXT}
        return self.send("execute", params, identity)

    def call(self, tool: str, given: Any = None, identity: Any = None) -> dict[str, Any]:
        return self.answer(self.start(tool, given, identity))

    def result(self, tool: str, given: Any = None) -> Any:
        answer = self.call(tool, given)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, tool: str, given: Any = None) -> dict[str, Any]:
        answer = self.call(tool, given)
        assert "error" in answer, answer
        return dict(answer["error"])

    def errors(self) -> str:
        """What is on stderr so far."""
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")


def not_json(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")
