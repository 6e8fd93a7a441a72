//! The programs of the tests: a small worker in Python, of which each test replaces what it is about.

/// A worker that speaks 1.0 and does everything right, unless `body` says otherwise. It is named `name`.
///
/// `body` may redefine `initialize`, `execute`, `health` and `notice`, change `HELLO`, or do something at once.
pub fn python(name: &str, body: &str) -> String {
    PYTHON.replace("NAME", name).replace("BODY", body)
}

/// The same in version 1.1: every call in a thread of its own, up to `concurrency` at once.
pub fn python_1_1(name: &str, concurrency: usize, body: &str) -> String {
    let newer = format!(
        r#"
HELLO.update(protocolVersion="1.1", concurrency={concurrency})
def run(id, params): answer(id, str(params["input"].get("text", "done")))
def execute(id, params): threading.Thread(target=run, args=(id, params), daemon=True).start()
{body}"#
    );
    python(name, &newer)
}

const PYTHON: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, threading, time
SIGNS = os.path.join(os.environ["HOME"], "signs")
LOCK = threading.Lock()
ME = os.urandom(4).hex()
def say(line):
    with LOCK:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
def send(**message): say(json.dumps({"jsonrpc": "2.0", **message}))
def answer(id, result): send(id=id, result=result)
def fail(id, code, message="no", **more): send(id=id, error={"code": code, "message": message, **more})
def mark(name, text=""):
    with open(os.path.join(SIGNS, name), "a") as file: file.write(text + "\n")
def marked(name): return os.path.exists(os.path.join(SIGNS, name))
def wait_for(name):
    while not marked(name): time.sleep(0.005)
HELLO = {"name": "NAME", "description": "A tool of a test", "version": "1.0.0", "inputSchema": {"type": "object"}}
def initialize(id, params): answer(id, HELLO)
def execute(id, params): answer(id, str(params["input"].get("text", "done")))
def health(id, params): answer(id, {"status": "healthy"})
def notice(method, params): pass
def end(): pass
BODY
for line in sys.stdin:
    message = json.loads(line)
    known = {"initialize": initialize, "execute": execute, "health": health}.get(message["method"])
    if "id" not in message: notice(message["method"], message["params"])
    elif known is None: fail(message["id"], -32601, "no such method")
    else: known(message["id"], message["params"])
end()
"#;
