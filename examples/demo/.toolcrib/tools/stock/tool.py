"""A program in any language is a tool: it answers lines of JSON. tool.json beside it says what agents see."""

import json
import sys

STOCK = {"apple": 120, "bread": 14, "honey": 0}

for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "execute":
        item = request["params"]["input"]["item"]
        if item in STOCK:
            answer["result"] = f"{STOCK[item]} of {item} in stock"
        else:
            answer["error"] = {"code": -32001, "message": f"{item} is not sold here; there are {', '.join(STOCK)}"}
    else:
        answer["result"] = {"status": "healthy"}
    print(json.dumps(answer), flush=True)
