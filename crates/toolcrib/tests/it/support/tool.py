"""A worker of tests: says what it is told, sleeps, leaves daemons, and notes down when it is asked to end."""

import json
import os
import signal
import sys
import time

marker, told, options = sys.argv[1], sys.argv[2], sys.argv[3:]


def daemon():
    """Leaves a grandchild in a session of its own, where that is allowed, which ignores what it can."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
    except OSError:
        pass
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.execvp("sleep", ["sleep", marker])
    os._exit(0)


def asked_to_end(*_):
    time.sleep(0.2)  # there is something to tidy up
    with open(told, "a", encoding="utf-8") as file:
        file.write("SIGTERM\n")
    os._exit(0)


def answer(method, given):
    if method == "initialize":
        return {"protocolVersion": "1.0"}
    if method == "health":
        return {"status": "healthy"}
    if given.get("daemon"):
        daemon()
    if "touch" in given:
        open(given["touch"], "w", encoding="utf-8").close()
    time.sleep(given.get("sleep", 0))
    return "said " + given.get("say", "nothing")


signal.signal(signal.SIGTERM, asked_to_end)
if "daemon" in options:
    daemon()
for line in sys.stdin:
    asked = json.loads(line)
    result = answer(asked["method"], asked["params"].get("input"))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
# The end of stdin is an end too; but what is of interest here is the signal that comes with it. Short sleeps, because
# Python runs the handler of a signal that comes just before a sleep only after it.
for _ in range(400):
    time.sleep(0.01)
