# What honest tools do, under the default policy.
import asyncio
import concurrent.futures
import datetime
import decimal
import hashlib
import json
import locale
import os
import pathlib
import random
import shutil
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import zoneinfo

places = json.loads(os.environ["TOOLCRIB_TEST_PLACES"])


def check(name, value):
    print("%s\t%s\t" % (name, "held" if value else "BROKEN"), flush=True)


def attempt(name, what):
    try:
        check(name, what())
    except BaseException as error:
        print("%s\tBROKEN\t%s: %s" % (name, type(error).__name__, str(error).replace("\n", " ")), flush=True)


def in_thread():
    kept = []
    threads = [threading.Thread(target=lambda: kept.append(1)) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return len(kept) == 8


def temporary():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "file")
        path.write_text("x")
        shutil.copyfile(path, path.with_suffix(".copy"))
        path.rename(path.with_name("moved"))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        return sorted(os.listdir(folder)) == ["file.copy", "moved"]


def copied():
    """With all that belongs to a file, as far as the rung lets it be changed."""
    with tempfile.TemporaryDirectory() as folder:
        made = shutil.copy2(pathlib.Path(places["project"], "data.txt"), folder)
        tree = shutil.copytree(os.path.join(places["project"], "src"), os.path.join(folder, "src"))
        return pathlib.Path(made).read_text() == "data" and os.listdir(tree) == ["main.c"]


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError("%s %s" % (done.returncode, done.stderr))
    return done.stdout


def listed():
    return "data.txt" in command("ls", "-la", places["project"])


def copied_by_a_program():
    target = os.path.join(tempfile.gettempdir(), "copy.txt")
    command("cp", os.path.join(places["project"], "data.txt"), target)
    command("cp", "-r", os.path.join(places["project"], "src"), target + ".d")
    return pathlib.Path(target).read_text() == "data" and os.listdir(target + ".d") == ["main.c"]


def database():
    base = sqlite3.connect(os.path.join(tempfile.gettempdir(), "a.db"))
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("create table t (x)")
    base.executemany("insert into t values (?)", [(n,) for n in range(1000)])
    base.commit()
    return base.execute("select sum(x) from t").fetchone() == (499500,)


def forked():
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def aborted():
    child = os.fork()
    if child == 0:
        os.abort()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -6


async def tasks():
    await asyncio.sleep(0)
    return sum(await asyncio.gather(*[asyncio.to_thread(lambda: 1) for _ in range(4)]))


def pool():
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        return sum(executor.map(lambda n: n, range(10))) == 45


attempt("reads the project", lambda: pathlib.Path(places["project"], "data.txt").read_text() == "data")
attempt("lists the project", lambda: "data.txt" in os.listdir(places["project"]))
attempt("works in the project", lambda: pathlib.Path("data.txt").read_text() == "data")
attempt("reads itself", lambda: "honest" in pathlib.Path(__file__).read_text())
attempt("threads", in_thread)
attempt("thread pool", pool)
attempt("temp files", temporary)
attempt("copy with attributes", copied)
attempt("sqlite", database)
attempt("fork", forked)
attempt("abort in a child", aborted)
attempt("asyncio", lambda: asyncio.run(tasks()) == 4)
attempt("zones", lambda: datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset().seconds == 7200)
attempt("local time", lambda: time.strftime("%Z"))
attempt("locale", lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"))
attempt("unicode output", lambda: unicodedata.name("ä") and sys.stdout.write("") == 0)
attempt("certificates", lambda: ssl.create_default_context().get_ca_certs() is not None)
attempt("random", lambda: len(os.urandom(8)) == 8 and random.SystemRandom().random() < 1)
attempt("home is its own", lambda: pathlib.Path.home().joinpath(".cache").mkdir() is None)
attempt("processors", lambda: os.cpu_count() >= 1)
attempt("who am i", lambda: os.path.expanduser("~") and os.getlogin is not None)
attempt("executable", lambda: os.path.exists(sys.executable))
attempt("hash", lambda: hashlib.sha256(b"x").hexdigest())
attempt("decimal", lambda: decimal.Decimal("0.1") + decimal.Decimal("0.2") == decimal.Decimal("0.3"))
if os.environ.get("TOOLCRIB_TEST_EXEC"):
    attempt("subprocess", lambda: subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\n")
    attempt("itself again", lambda: subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\n")
    attempt("ls", listed)
    attempt("cp", copied_by_a_program)
    attempt("git", lambda: subprocess.run(["git", "--version"], capture_output=True).returncode == 0)
if os.environ.get("TOOLCRIB_TEST_PREFIX"):
    attempt("environment", lambda: sys.prefix == os.environ["TOOLCRIB_TEST_PREFIX"] and sys.base_prefix != sys.prefix)
    import inside_the_environment

    attempt("its packages", lambda: inside_the_environment.WORD == "here")
print("end\theld\t", flush=True)
