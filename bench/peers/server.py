# The official Python SDK's server with one tool that does nothing, for the bench.
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

mcp = MCPServer("peer")


@mcp.tool()
def noop() -> str:
    """Does nothing"""
    return "ok"


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = mcp.streamable_http_app(stateless_http=True, json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
