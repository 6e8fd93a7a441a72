"""A registered tool: a program anywhere on the disk, kept by its name. It says itself what it is."""

import json
import sys

ABOUT = {
    "name": "delivery-days",
    "description": "Says how many days a delivery takes",
    "version": "1.0.0",
    "inputSchema": {
        "type": "object",
        "properties": {"country": {"type": "string", "description": "Where to, as two letters"}},
        "required": ["country"],
        "additionalProperties": False,
    },
}

for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = ABOUT
    elif request["method"] == "health":
        result = {"status": "healthy"}
    else:
        country = request["params"]["input"]["country"].upper()
        result = f"{country}: {2 if country in ('AT', 'CH', 'DE') else 5} days"
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
