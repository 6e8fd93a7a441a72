#!/usr/bin/env bash
# The tool TOOL_NAME. Its name and its parameters are in tool.json beside this file. Needs jq.

# What the tool does: change this. $1 holds the arguments as JSON. What is printed is the answer; where the function
# returns non-zero, it is the reason for the failure. Its stdin is empty. (A shell variable ends at a null byte and $()
# takes newlines off the end, so a text that must stay as it is goes from jq straight to stdout, as here.)
run() {
    local times
    times=$(jq -r '.times // 1' <<<"$1") || return
    # Not ((times > 100)): that would run what is in a text.
    if ! [ "$times" -le 100 ]; then
        echo "a hundred times is enough"
        return 1
    fi
    log "times: $times"
    for _ in $(seq -- "$times"); do
        jq -r .text <<<"$1" || return
    done
}

# For people: stdout belongs to the protocol, stderr is kept as the tool's log.
log() { printf '%s\n' "$*" >&2; }

# Below is the worker protocol: one JSON-RPC message per line. It can stay as it is. jq reads and writes every value:
# nothing is ever pasted into JSON. Long values go through pipes, for an argument holds no more than 128 KiB.

if ! command -v jq >/dev/null; then
    log "TOOL_NAME needs jq, and it is not on PATH: install it, for instance with \`apt-get install jq\`"
    read -r
    echo '{"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "jq is not on PATH: install it"}}'
    exit 1
fi
here=$(dirname -- "${BASH_SOURCE[0]}")

required=$(jq -c '.inputSchema.required // []' "$here/tool.json")

# Turns a message into three lines: what to do, the id, the arguments (or the words of an error).
READ='
def missing: . as $input | [$required[] | select(. as $name | $input | has($name) | not)];
def out($what; $rest): $what, (if type == "object" then .id else null end | tojson), ($rest | tojson);
if length != 1 then error("not one message") else .[0] end
| if type != "object" then out("-32600"; "a message is an object")
  elif .jsonrpc != "2.0" or (.method | type) != "string" then
      out("-32600"; "a message has \"jsonrpc\": \"2.0\" and a method")
  elif has("id") | not then out("nothing"; null)
  elif .method == "initialize" or .method == "health" then out(.method; null)
  elif .method != "execute" then out("-32601"; "there is no method \"\(.method)\"")
  elif (.params | type) != "object" or (.params.input | type) != "object" then
      out("-32602"; "params.input is not an object")
  elif (.params.input | missing) != [] then
      out("-32602"; "the parameter `\(.params.input | missing[0])` is missing")
  else out("execute"; .params.input) end'

# Both take their value as JSON on stdin.
send_result() { jq -c --argjson id "$id" '{jsonrpc: "2.0", id: $id, result: .}'; }
send_error() { jq -c --argjson id "$id" --argjson code "$1" '{jsonrpc: "2.0", id: $id, error: {code: $code, message: .}}'; }

execute() {
    local said status
    said=$(run "$1" </dev/null | jq -Rs . && exit "${PIPESTATUS[0]}")
    status=$?
    if ((status == 0)); then
        printf '%s\n' "$said" | send_result
    else
        printf '%s\n' "$said" | jq --argjson status "$status" 'rtrimstr("\n") | if . == "" then "exit code \($status)" else . end' | send_error -32001
    fi
}

while IFS= read -r line || [[ -n $line ]]; do
    [[ $line =~ ^[[:space:]]*$ ]] && continue
    if ! { IFS= read -r what && IFS= read -r id && IFS= read -r value; } < <(jq -rs --argjson required "$required" "$READ" <<<"$line" 2>/dev/null); then
        id=null
        echo '"not JSON"' | send_error -32700
        continue
    fi
    case $what in
    nothing) ;;
    initialize) jq '{name, description, version, inputSchema}' "$here/tool.json" | send_result ;;
    health) echo '{"status": "healthy"}' | send_result ;;
    execute) execute "$value" ;;
    *) printf '%s\n' "$value" | send_error "$what" ;;
    esac
done
