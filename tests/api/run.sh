#!/bin/sh
# Lets schemathesis loose on a crib, in namespaces of their own and as nobody. Started by tests/it/schemathesis.rs with
# `unshare -m -n`; WORK is a fresh folder that holds the binary, the hooks and the fixture.
set -eu
work=$1 venv=$2 seconds=$3
python=$work/venv/bin/python
mkdir -p "$work/own" "$work/project/.toolcrib/tools" "$work/venv"

# Only loopback, and only this one.
"$venv/bin/python" -c '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))'

# The venv is seen here, whoever may read the place where it lies. Python itself may lie in a home that nobody else may
# enter: then that home is hidden, but for Python.
mount --bind "$venv" "$work/venv"
base=$("$python" -c 'import sys; print(sys.base_prefix)')
case $base/ in
"${OWNER_HOME:-/nowhere}"/*)
    mkdir "$work/base"
    mount --bind "$base" "$work/base"
    mount -t tmpfs -o mode=755 none "$OWNER_HOME"
    mkdir -p "$base"
    mount --bind "$work/base" "$base"
    ;;
esac

as_nobody=
if [ "${REAL_ROOT:-}" = 1 ]; then
    chown 65534:65534 "$work" "$work/own" "$work/project" "$work/project/.toolcrib" "$work/project/.toolcrib/tools"
    as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs"
fi

cd "$work/project"
# shellcheck disable=SC2086
$as_nobody env -i HOME="$work/own" PATH="$work/bin" TOOLCRIB_LOG=warn \
    "$work/toolcrib" serve --json --no-auth --port 7717 >"$work/serve.json" 2>"$work/serve.log" &
crib=$!
trap 'kill $crib 2>/dev/null || true' EXIT
tries=0
until [ -s "$work/serve.json" ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { cat "$work/serve.log" >&2; exit 90; }
    sleep 0.1
done

cd "$work/own"
status=0
# What is made up is the same each time, except in a soak. The checks of schemathesis on itself judge what it makes up,
# not what the crib answers.
same=--generation-deterministic
[ -z "${TOOLCRIB_SOAK:-}" ] || same=
# shellcheck disable=SC2086
$as_nobody env -i HOME="$work/own" PATH=/usr/bin:/bin PYTHONPATH="$work/hooks" SCHEMATHESIS_HOOKS=hooks FIXTURE=fixture \
    ESCAPED="$work/own/escaped" SEEN="$work/own/seen" timeout $((seconds * 2 + 20)) \
    "$python" -m schemathesis.cli run http://127.0.0.1:7717/openapi.json --max-time "$seconds" --request-timeout 20 \
    --checks no_bug_of_ours,status_code_conformance,content_type_conformance,response_schema_conformance \
    --exclude-path /api/events --phases examples,coverage,fuzzing,stateful --max-examples 20 --no-color --warnings off \
    --suppress-health-check all $same \
    >"$work/said" 2>&1 || status=$?

if [ -e "$work/own/escaped" ]; then
    cat "$work/own/escaped" >&2
    exit 91
fi
# Whatever came of it all: the crib still answers, and nothing but the fixture was ever kept.
"$python" - <<'END' || exit 92
import json, urllib.request
page = json.load(urllib.request.urlopen("http://127.0.0.1:7717/api/custom-tools?limit=1000", timeout=10))
assert all(tool["command"] == "fixture" for tool in page["tools"]), page
END
kill -0 $crib || exit 93
exit $status
