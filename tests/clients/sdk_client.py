# A client on the official Python SDK: does what it is told against one server and prints what it saw as JSON.
#
# Usage: python sdk_client.py ORDERS stdio COMMAND… | http URL
# ORDERS is JSON: {"text": [tool, arguments], "structured": tool, "long": tool, "draft": path, "plugin": path,
# "shapes": [tool…], "mode": "auto" (2026-07-28) or "legacy" (initialize)}

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError


def metadata(result):
    return (result.meta or {}).get("toolcrib/metadata", {})


async def read_on(client, tool):
    """A long output: the start, and then page after page to its end. (It is ASCII: bytes are characters.)"""
    first = await client.call_tool(tool, {})
    cut = metadata(first)
    notice, whole = first.content[0].text.split("\n\n", 1)
    assert notice.startswith("[truncated: ") and cut["outputId"] in notice
    whole = whole.split("\n\n[truncated: ")[0]
    while True:
        page = await client.call_tool("read-output", {"id": cut["outputId"], "offset": len(whole)})
        said = page.content[0].text
        if metadata(page).get("nextOffset") is None:
            return cut["truncated"], whole + said
        whole += said.rsplit("\n[more: ", 1)[0]


async def unknown_tool(client):
    try:
        await client.call_tool("no-such-tool", {})
    except MCPError as error:
        return error.error.code


async def names(client):
    listed = await client.list_tools(cache_mode="bypass")
    return [tool.name for tool in listed.tools]


async def main():
    orders, kind, *target = sys.argv[1:]
    orders = json.loads(orders)
    server = target[0]
    if kind == "stdio":
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    changed = asyncio.Event()

    async def heard(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            changed.set()

    async with Client(server, mode=orders["mode"], message_handler=heard) as client:
        saw = {
            "serverInfo": client.server_info.model_dump(mode="json", exclude_none=True),
            "protocolVersion": client.protocol_version,
            "instructions": client.instructions,
            "tools": await names(client),
            "text": (await client.call_tool(*orders["text"])).content[0].text,
            "structured": (await client.call_tool(orders["structured"], {})).structured_content,
            "error": await unknown_tool(client),
            "shapes": {name: (await client.call_tool(name, {})).structured_content for name in orders["shapes"]},
        }
        saw["truncated"], saw["whole"] = await read_on(client, orders["long"])
        if orders["mode"] == "legacy":
            os.rename(orders["draft"], orders["plugin"])
            saw["listChangedSeen"] = await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as subscription:
                os.rename(orders["draft"], orders["plugin"])
                await anext(subscription)
                saw["listChangedSeen"] = True
        saw["toolsAfter"] = await names(client)
    print(json.dumps(saw))


asyncio.run(main())
