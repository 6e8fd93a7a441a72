# Attacks on what there is of memory, processes, disk and processor. Follows guard.py. Each is bounded in itself: at most
# 300 processes, 1 GB, 200 MB of disk, 20 seconds.
import errno
import mmap
import signal
import threading
import time

TMP = os.environ["TMPDIR"]
MB = 1 << 20
# As many as the test allows.
PROCESSES = 40


def say(*words):
    print(*words, flush=True)


def until_ended():
    # Whoever watches ends it, soon; where nobody does, the alarm does, and the test sees that.
    signal.alarm(20)
    while True:
        signal.pause()


def forks():
    made = 0
    alive, here = os.pipe()
    try:
        for _ in range(300):
            child = os.fork()
            if child == 0:
                # Until its parent is gone, which has the other end.
                os.close(here)
                os.read(alive, 1)
                os._exit(0)
            made += 1
    except OSError as error:
        say("forks", made, errno.errorcode[error.errno])
        return
    say("forks", made)
    until_ended()


def threads():
    made = 0
    never = threading.Event()
    try:
        for _ in range(300):
            threading.Thread(target=never.wait, daemon=True).start()
            made += 1
    except RuntimeError:
        # Something else refused it, after more than it may have: whoever watches has yet to see them.
        if made > PROCESSES:
            until_ended()
        say("threads", made, "refused")
        os._exit(0)
    say("threads", made)
    until_ended()


def private():
    kept = []
    try:
        for _ in range(16):
            kept.append(bytearray(os.urandom(1)) * (64 * MB))
            say("private", len(kept) * 64)
    except MemoryError:
        say("private", len(kept) * 64, "refused")
        return
    until_ended()


def shared():
    kept = []
    for _ in range(16):
        memory = mmap.mmap(-1, 64 * MB)
        for at in range(0, 64 * MB, 4096):
            memory[at] = 1
        kept.append(memory)
        say("shared", len(kept) * 64)
    until_ended()


def dropped():
    # The pages stay, though the process lets go of them.
    kept = []
    for _ in range(16):
        memory = mmap.mmap(-1, 64 * MB)
        for at in range(0, 64 * MB, 4096):
            memory[at] = 1
        memory.madvise(mmap.MADV_DONTNEED)
        kept.append(memory)
        say("dropped", len(kept) * 64)
    until_ended()


def nameless():
    # Files in memory, which no map shows.
    kept = []
    try:
        for _ in range(16):
            file = os.memfd_create("x")
            for _ in range(64):
                os.write(file, b"x" * MB)
            kept.append(file)
            say("nameless", len(kept) * 64)
    except OSError:
        say("nameless", len(kept) * 64, "refused")
        return
    until_ended()


def several():
    # Each within what one process may have.
    alive, here = os.pipe()
    for _ in range(6):
        if os.fork() == 0:
            os.close(here)
            kept = bytearray(b"x") * (128 * MB)
            os.read(alive, 1)
            os._exit(len(kept) == 0)
    # The kernel may end one of them, and the others live on.
    os.wait()
    say("several", 768, "none")


def sockets():
    import socket
    fill_sockets(socket.SOCK_STREAM, 1 << 16)


def packets():
    import socket
    fill_sockets(socket.SOCK_SEQPACKET, 200_000)


def fill_sockets(kind, size):
    # What is written to a socket that nobody reads lies in the kernel, in no process's memory.
    import socket
    kept, held = [], 0
    try:
        for _ in range(2000):
            pair = socket.socketpair(socket.AF_UNIX, kind)
            kept.append(pair)
            for one in pair:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
                one.setblocking(False)
                try:
                    while held < 1000 * MB:
                        held += one.send(b"x" * size)
                except BlockingIOError:
                    pass
            if len(kept) % 50 == 0:
                say("sockets", held // MB)
                # It is looked at every 50 ms: what is taken in between is said not to count at once.
                time.sleep(0.05)
    except OSError as error:
        say("sockets", held // MB, errno.errorcode[error.errno])
        if error.errno == errno.ENOBUFS:
            # The kernel itself counts it, and has no room for a whole packet.
            return
    until_ended()


def unwaited():
    # Children that nobody waits for, each too short to be seen twice. They say how much they used.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    reader, writer = os.pipe()
    begin = time.monotonic()
    while time.monotonic() < begin + 8:
        alive, other = os.pipe()
        if os.fork() == 0:
            while time.process_time() < 0.02:
                pass
            os.write(writer, b"x")
            os._exit(0)
        os.close(other)
        os.read(alive, 1)
        os.close(alive)
    spent = time.monotonic() - begin
    os.set_blocking(reader, False)
    done = len(os.read(reader, 1 << 20))
    say("unwaited", round(done * 0.02 / spent * 100))


def watches():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    made = 0
    while made < 400 and libc.inotify_init1(0) >= 0:
        made += 1
    say("watches", made, errno.errorcode.get(ctypes.get_errno(), "none"))


def tables():
    # Reading what is empty takes no page, but a table for every two megabytes.
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size, step = 400 << 30, 2 << 20
    begin = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
    if begin in (None, 2**64 - 1):
        say("tables", 0, "refused")
        return
    libc.madvise(begin, size, 15)
    for at in range(0, size, step):
        ctypes.c_ubyte.from_address(begin + at).value
        if at % (16 << 30) == 0:
            say("tables", at // step * 4096 // MB)
    say("tables", size // step * 4096 // MB)
    until_ended()


def waiting():
    # Files that are waited for lie in the kernel, and the user has so many for all programs.
    import select
    files = [os.eventfd(0) for _ in range(300)]
    kept, made = [], 0
    try:
        for _ in range(100):
            kept.append(select.epoll())
            for file in files:
                for number in range(900, 1000):
                    os.dup2(file, number)
                    kept[-1].register(number, 0)
                    made += 1
            for number in range(900, 1000):
                os.close(number)
            say("waiting", made)
    except OSError as error:
        say("waiting", made, errno.errorcode[error.errno])
        return
    until_ended()


def timers():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    made = 0
    while made < 5000 and libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0:
        made += 1
    say("timers", made, errno.errorcode.get(ctypes.get_errno(), "none"))


def requests():
    # Room for requests that are read and written meanwhile, of which the machine has little.
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    made = 0
    while made < 20 and libc.syscall(206, 100, ctypes.byref(ctypes.c_ulong())) == 0:
        made += 1
    say("requests", made, errno.errorcode.get(ctypes.get_errno(), "none"))


def futexes():
    # A table of waiting threads, as large as a process likes: 256 MB.
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.prctl(78, *[ctypes.c_ulong(word) for word in (1, 1 << 22, 0, 0)])
    say("futexes", 256 if done == 0 else 0, errno.errorcode.get(ctypes.get_errno(), "none"))


def leases():
    # Whoever opens a file that somebody else has a lease of waits, or is refused.
    import fcntl
    taken = 0
    for command, argument in ((1024, fcntl.F_RDLCK), (1024, fcntl.F_WRLCK), (1026, 0xf)):
        path = TMP + "/leased" if command == 1024 else TMP
        if command == 1024:
            open(path, "w").close()
        file = os.open(path, os.O_RDONLY)
        try:
            fcntl.fcntl(file, command, argument)
            taken += 1
        except OSError as error:
            assert error.errno == errno.EPERM, error
        os.close(file)
    say("leases", taken, "none")


def entries():
    # Files that hold nothing take memory all the same.
    made = 0
    try:
        for folder in range(100):
            place = "%s/empty-%d" % (TMP, folder)
            os.mkdir(place)
            for name in range(1000):
                os.close(os.open("%s/%d" % (place, name), os.O_CREAT))
                made += 1
    except OSError as error:
        say("entries", made, errno.errorcode[error.errno])
        return
    say("entries", made, "none")


def fill(path, megabytes):
    written = 0
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(megabytes):
                written += file.write(b"x" * MB)
    except OSError as error:
        return written // MB, errno.errorcode[error.errno]
    return written // MB, "none"


def disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    say("disk", *fill(TMP + "/large", 100))


def shm():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    say("shm", *fill("/dev/shm/large", 100))


def files():
    made, end = 0, "none"
    try:
        for folder in range(20):
            place = "%s/many-%d" % (TMP, folder)
            os.mkdir(place)
            for name in range(1000):
                with open("%s/%d" % (place, name), "w") as file:
                    file.write("x" * 8192)
                made += 1
    except OSError as error:
        end = errno.errorcode[error.errno]
    say("files", made, end)


def processor():
    # Four that work for three seconds; the test is told how much they got.
    begin, children = time.monotonic(), []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            while time.monotonic() < begin + 4:
                pass
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    used = os.times()
    say("processor", round((used.children_user + used.children_system) / (time.monotonic() - begin) * 100))


def daemon():
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.fork()
        until_ended()
    say("daemon", "left")


signal.alarm(20)
globals()[os.environ["TOOLCRIB_TEST_BOMB"]]()
