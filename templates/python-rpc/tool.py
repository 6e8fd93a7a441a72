#!/usr/bin/env python3
"""The tool TOOL_NAME. Its name and its parameters are in tool.json beside this file."""

import json
import sys
from pathlib import Path


def run(text, times=1):
    """What the tool does: change this. The arguments come by name; an exception is a failure."""
    if times > 100:
        raise ValueError("a hundred times is enough")
    log(f"times: {times}")
    return (text + "\n") * times


def log(message):
    """For people: stdout belongs to the protocol, stderr is kept as the tool's log."""
    print(message, file=sys.stderr, flush=True)


# Below is the worker protocol: one JSON-RPC message per line. It can stay as it is.


class Refused(Exception):
    """An error of the protocol, with its code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def read_spec():
    return json.loads(Path(__file__).with_name("tool.json").read_text(encoding="utf-8"))


def answer(method, params):
    if method == "initialize":
        spec = read_spec()
        return {key: spec.get(key) for key in ("name", "description", "version", "inputSchema")}
    if method == "health":
        return {"status": "healthy"}
    if method != "execute":
        raise Refused(-32601, f"there is no method {method!r}")
    arguments = params.get("input") if isinstance(params, dict) else None
    if not isinstance(arguments, dict):
        raise Refused(-32602, "params.input is not an object")
    for name in read_spec().get("inputSchema", {}).get("required", []):
        if name not in arguments:
            raise Refused(-32602, f"the parameter `{name}` is missing")
    return run(**arguments)


def reply(message):
    """The answer to one message; None where there is none to give."""
    if not isinstance(message, dict):
        return {"id": None, "error": {"code": -32600, "message": "a message is an object"}}
    method, asked = message.get("method"), message.get("id")
    try:
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            raise Refused(-32600, 'a message has "jsonrpc": "2.0" and a method')
        if "id" not in message:
            return None  # a notification
        return {"id": asked, "result": answer(method, message.get("params"))}
    except Refused as refused:
        return {"id": asked, "error": {"code": refused.code, "message": str(refused)}}
    except Exception as error:
        return {"id": asked, "error": {"code": -32001, "message": f"{type(error).__name__}: {error}"}}


def send(body):
    # ASCII with escapes, so that no locale can spoil it.
    print(json.dumps({"jsonrpc": "2.0", **body}, allow_nan=False), flush=True)


def main():
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            send({"id": None, "error": {"code": -32700, "message": f"not JSON: {error}"}})
            continue
        body = reply(message)
        if body is None:
            continue
        try:
            send(body)
        except (TypeError, ValueError, RecursionError) as error:  # the result can't be written as JSON
            send({"id": body["id"], "error": {"code": -32001, "message": f"the result: {error}"}})


if __name__ == "__main__":
    main()
