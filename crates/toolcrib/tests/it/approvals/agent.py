"""An agent of a test: it speaks MCP to the crib, and has a shell in which it tries what it is told."""
import http.client, json, os, pty, signal, socket, subprocess, sys, time

binary, socket_path = sys.argv[1], sys.argv[2]
PTY = """
import os, pty, sys
child, screen = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        part = os.read(screen, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(shown)
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(status) & 255)
"""
RAW = """
import socket, sys
path, target, body = sys.argv[1:4]
with socket.socket(socket.AF_UNIX) as crib:
    crib.connect(path)
    head = f"POST {target} HTTP/1.1\\r\\nhost: localhost\\r\\ncontent-type: application/json\\r\\nconnection: close\\r\\n"
    crib.sendall((head + f"content-length: {len(body)}\\r\\n\\r\\n" + body).encode())
    answer = b""
    while part := crib.recv(65536):
        answer += part
status = int(answer.split(b" ", 2)[1])
print(answer.decode())
sys.exit(0 if status < 300 else 3)
"""
mcp = subprocess.Popen([binary, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}}
mcp.stdin.write(json.dumps(hello) + "\n")
mcp.stdin.flush()
mcp.stdout.readline()
print("ready", flush=True)

def orphaned(argv, environment):
    """Runs a command in a process that nobody knows the parents of."""
    out = f"{os.environ['HOME']}/orphan-{time.monotonic_ns()}"
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        # Until it is adopted.
        while os.getppid() == os.getpid():
            time.sleep(0.01)
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        with open(out + ".part", "wb") as file:
            file.write(f"{ran.returncode}\n".encode() + ran.stdout)
        os.rename(out + ".part", out)
        os._exit(0)
    os.waitpid(middle, 0)
    while not os.path.exists(out):
        time.sleep(0.01)
    code, text = open(out, errors="replace").read().split("\n", 1)
    return int(code), text

def attempt(how, argv):
    if argv[0] == "toolcrib":
        argv = [binary] + argv[1:]
    if argv[0] == "raw":
        argv = [sys.executable, "-c", RAW, socket_path] + argv[1:]
    environment = dict(os.environ)
    if "clean" in how:
        environment = {key: environment[key] for key in ("HOME", "PATH")}
    if "mute" in how:
        mcp.send_signal(signal.SIGKILL)
        mcp.wait()
    if "pty" in how:
        argv = [sys.executable, "-c", PTY] + argv
    if "background" in how:
        argv = [sys.executable, "-c", PTY, "sh", "-mc", '"$@" & wait $!', "sh"] + argv
    if "shell" in how:
        argv = ["sh", "-c", '"$@"; exit $?', "sh"] + argv
    if "orphan" in how:
        return orphaned(argv, environment)
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    return ran.returncode, ran.stdout.decode(errors="replace")

for line in sys.stdin:
    told = json.loads(line)
    code, text = attempt(told["how"], told["argv"])
    print(json.dumps({"code": code, "text": text}), flush=True)
