#!/bin/sh
# A tool in a folder: tool.json says what it is, this program answers, table.txt is its own.
# jq reads every value and writes every value, so no text can break out of its quotes.

while IFS= read -r line; do
    id=$(printf '%s' "$line" | jq -c '.id // null')
    reply() { printf '%s' "$1" | jq -c --argjson id "$id" '{jsonrpc: "2.0", id: $id} + .'; }
    case $(printf '%s' "$line" | jq -r '.method // empty') in
        initialize) reply "$(jq -c '{result: {name, description, version, inputSchema}}' tool.json)" ;;
        health) reply '{"result": {"status": "healthy"}}' ;;
        execute)
            after=$(printf '%s' "$line" | jq -r '.params.input.after')
            tide=$(awk -v after="$after" '$1 > after { print; exit }' table.txt)
            reply "$(jq -nc --arg tide "${tide:-tomorrow}" '{result: $tide}')"
            ;;
        *) reply '{"error": {"code": -32601, "message": "there is no such method"}}' ;;
    esac
done
