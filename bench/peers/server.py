# The official Python SDK's server with a tool that does nothing and an echo, for the bench.
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

mcp = MCPServer("peer")


@mcp.tool()
def noop() -> str:
    """Does nothing"""
    return "ok"


@mcp.tool()
def echo(text: str) -> str:
    """Gives back the text"""
    return text


# With the protocol named: asyncio turns Nagle's algorithm off only then, and an answer would wait 40 ms for it.
listener = socket.socket(proto=socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(128)
print(listener.getsockname()[1], flush=True)
app = mcp.streamable_http_app(stateless_http=True, json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
