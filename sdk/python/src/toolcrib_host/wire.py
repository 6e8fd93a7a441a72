"""The protocol's two descriptors: messages come in by one and go out by the other, and nobody else has them."""

from __future__ import annotations

import os
from json import JSONDecoder
from json.encoder import JSONEncoder, encode_basestring
from threading import Lock, get_ident

from toolcrib.context import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

NOT_JSON, NO_REQUEST, NO_METHOD, BAD_PARAMS, NOT_LOADED, FAILED = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32002,
    -32001,
)

decode = JSONDecoder(strict=False).decode
encode = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode


def to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8: pairs are joined, halves replaced.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def id_text(asked: Any) -> str:
    """A message's id as JSON."""
    if type(asked) is int:
        return str(asked)
    return encode_basestring(asked) if type(asked) is str else encode(asked)


def result_line(asked: Any, result: Any) -> bytes:
    body = encode_basestring(result) if type(result) is str else encode(result)
    return to_bytes(f'{{"jsonrpc":"2.0","id":{id_text(asked)},"result":{body}}}\n')


def error_line(asked: Any, code: int, message: str, data: Any = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if data:
        error["data"] = data
    return to_bytes(f'{{"jsonrpc":"2.0","id":{id_text(asked)},"error":{encode(error)}}}\n')


def notice_line(method: str, params: dict[str, Any]) -> bytes:
    return to_bytes(f'{{"jsonrpc":"2.0","method":"{method}","params":{encode(params)}}}\n')


class Wire:
    """Where messages come from and go to."""

    def __init__(self, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self.begun: list[bytes] = []
        self.lock = Lock()
        #: The thread that is writing a line: it is not cancelled meanwhile, so that no line is torn.
        self.writer = 0
        #: The thread that is to be cancelled once its line is written.
        self.cut_off = 0

    def send(self, line: bytes) -> None:
        """Writes one line, whole."""
        with self.lock:
            self.writer = get_ident()
            try:
                written = os.write(self.target, line)
                while written < len(line):
                    line = line[written:]
                    written = os.write(self.target, line)
            except BrokenPipeError:
                pass  # nobody reads any more; the end of stdin is near
            finally:
                self.writer = 0
        if self.cut_off and self.cut_off == get_ident():
            self.cut_off = 0
            raise Cancelled

    def read(self) -> Optional[list[bytes]]:
        """The lines that have come, at least one; waits for it. None at the end."""
        while True:
            try:
                chunk = os.read(self.source, 1 << 18)
            except OSError:
                return None
            if not chunk:
                return None
            if b"\n" not in chunk:
                self.begun.append(chunk)
                continue
            lines = chunk.split(b"\n")
            if self.begun:
                self.begun.append(lines[0])
                lines[0] = b"".join(self.begun)
            rest = lines.pop()
            self.begun = [rest] if rest else []
            return lines

    def abandon(self) -> None:
        """In a forked child: it must not speak for its parent."""
        self.lock = Lock()
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self.source, inheritable=False)
        os.dup2(nowhere, self.target, inheritable=False)
        os.close(nowhere)


def open_wire() -> Wire:
    """Takes stdin and stdout for the protocol; user code gets /dev/null and stderr in their place."""
    source, target = os.dup(0), os.dup(1)  # not inherited by child processes
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return Wire(source, target)
