# An echo as an executable tool: the worker protocol with Python's own library alone. For the bench.
import json
import sys

SPEC = {
    "name": "echo",
    "description": "Gives back the text",
    "version": "1.0.0",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(method, params):
    if method == "execute":
        return {"result": params["input"]["text"]}
    if method == "initialize":
        return {"result": SPEC}
    if method == "health":
        return {"result": {"status": "healthy"}}
    return {"error": {"code": -32601, "message": "no such method"}}


for line in sys.stdin:
    request = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": request["id"], **answer(request["method"], request["params"])}
    print(json.dumps(reply), flush=True)
