# More attempts: sockets, other processes, the kernel's doors, other programs. Follows attack.py.

# Network.


def tcp(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(3)
        sock.connect(address)
    return True


@attempt
def connect_to_loopback():
    return tcp(socket.AF_INET, ("127.0.0.1", AT["tcp"]))


@attempt
def connect_over_ipv6():
    return tcp(socket.AF_INET6, ("::ffff:127.0.0.1", AT["tcp"]))


@attempt
def connect_over_mptcp():
    return tcp(socket.AF_INET, ("127.0.0.1", AT["tcp"]), protocol=262)


@attempt
def connect_by_fast_open():
    with socket.socket() as sock:
        sock.sendto(b"x", 0x20000000, ("127.0.0.1", AT["tcp"]))
    return True


@attempt
def connect_by_sendmsg_fast_open():
    with socket.socket() as sock:
        sock.sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", AT["tcp"]))
    return True


@attempt
def send_a_datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"out", ("127.0.0.1", AT["udp"]))
    return True


@attempt
def listen():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
    return True


@attempt
def ask_netlink():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.bind((0, 0))
    return True


@attempt
def open_rare_sockets():
    for family in [17, 38, 40, 44, 31, 21, 16, 29]:  # packet, alg, vsock, xdp, bluetooth, rds, netlink, can
        for kind in [1, 2, 3, 5]:
            try:
                socket.socket(family, kind, 0)
                return family, kind
            except OSError:
                pass
    return False


@attempt
def open_a_raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return True


@attempt
def reach_an_abstract_socket():
    return tcp(socket.AF_UNIX, "\0" + AT["abstract"])


@attempt
def reach_the_cribs_socket():
    return tcp(socket.AF_UNIX, AT["crib"] + "/crib.sock")


@attempt
def reach_a_datagram_socket_by_path():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", AT["crib"] + "/crib.sock")
    return True


@attempt
def make_an_internet_pair():
    socket.socketpair(socket.AF_INET, socket.SOCK_STREAM)
    return True


# Processes.


@attempt
def signal_another():
    os.kill(AT["victim"], signal.SIGTERM)
    return True


@attempt
def signal_another_through_a_descriptor():
    descriptor = os.pidfd_open(AT["victim"])
    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    return True


@attempt
def signal_another_by_queue():
    call(129, AT["victim"], signal.SIGTERM, (ctypes.c_char * 128)())
    return True


@attempt
def signal_the_crib():
    os.kill(AT["crib_pid"], 0)
    return True


@attempt
def trace_another():
    call(101, 16, AT["victim"], 0, 0)
    return True


@attempt
def read_anothers_memory():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_ulong * 2)(0x400000, 8)
    return call(310, AT["victim"], vector, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), 0) >= 0


@attempt
def steal_a_descriptor():
    return call(438, os.pidfd_open(AT["victim"]), 0, 0) >= 0


@attempt
def limit_another():
    resource.prlimit(AT["victim"], resource.RLIMIT_NOFILE, (0, 0))
    return True


@attempt
def slow_another_down():
    os.setpriority(os.PRIO_PROCESS, AT["victim"], 19)
    return True


@attempt
def slow_the_user_down():
    os.setpriority(os.PRIO_USER, 0, 19)
    # In a user namespace of one's own nobody else is meant.
    return not AT["apart"]


@attempt
def bind_another_to_a_core():
    os.sched_setaffinity(AT["victim"], {0})
    return True


@attempt
def compare_with_another():
    return call(312, os.getpid(), AT["victim"], 0, 0, 0) >= 0


@attempt
def use_shared_memory_of_others():
    return call(29, 0x7C7C, 4096, 0o1666) >= 0


@attempt
def use_message_queues():
    return call(240, b"/toolcrib-test", os.O_RDWR | os.O_CREAT, 0o600, 0) >= 0 and not AT["apart"]


@attempt
def reach_anothers_shared_memory_file():
    return read("/dev/shm/" + AT["shared"])


# The kernel's doors.


@attempt
def unshare_users():
    return call(272, 0x10000000) == 0


@attempt
def clone_users():
    child = call(56, ctypes.c_ulong(0x10000000 | signal.SIGCHLD), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@attempt
def clone3_users():
    args = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call(435, args, ctypes.c_ulong(64))
    if child == 0:
        os._exit(0)
    return True


@attempt
def enter_anothers_namespace():
    return call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0) == 0


@attempt
def set_up_io_uring():
    return call(425, 4, (ctypes.c_char * 120)()) >= 0


@attempt
def use_keys():
    return call(250, 0, -5, 1) >= 0


@attempt
def add_a_key():
    return call(248, b"user", b"x", b"y", 1, -3) >= 0


@attempt
def load_bpf():
    return call(321, 0, (ctypes.c_char * 128)(), 128) >= 0


@attempt
def open_performance_counters():
    attributes = (ctypes.c_char * 128)()
    struct.pack_into("II", attributes, 0, 1, 128)
    return call(298, attributes, 0, -1, -1, 0) >= 0


@attempt
def handle_page_faults():
    return call(323, 0) >= 0


@attempt
def mount_something():
    # Left out for root: see the test.
    if os.getuid() == 0:
        return False
    return call(165, b"none", os.fsencode(TMP), b"tmpfs", 0, 0) == 0


@attempt
def open_a_mount_tree():
    return call(428, -100, b"/", 1) >= 0


@attempt
def open_a_file_system():
    return call(430, b"tmpfs", 0) >= 0


@attempt
def change_the_root():
    os.chroot(TMP)
    return True


@attempt
def become_root():
    if os.getuid() == 0:
        return False
    os.setuid(0)
    return True


@attempt
def change_group():
    os.setgroups([0])
    return True


@attempt
def raise_limits():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    return True


@attempt
def raise_the_core_limit():
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    return True


@attempt
def call_as_x32():
    return call(0x40000000 | 39) > 0


@attempt
def call_as_32_bit():
    # In a child, which the kernel kills for it.
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        function = ctypes.CFUNCTYPE(ctypes.c_int)(address)
        os._exit(0 if function() > 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@attempt
def type_into_the_terminal():
    for descriptor in [0, 1, 2]:
        try:
            fcntl.ioctl(descriptor, 0x5412, b"x")
            return descriptor
        except OSError as error:
            if error.errno != errno.EPERM:
                return error
    return False


@attempt
def set_the_clock():
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return True


@attempt
def rename_the_machine():
    socket.sethostname("x")
    return True


# Programs.


def in_child(what):
    """Whether a child got as far as to become another program."""
    marker = TMP + "/ran"
    child = os.fork()
    if child == 0:
        try:
            what(marker)
        except OSError:
            pass
        os._exit(77)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code != 77


@attempt
def execute_a_shell():
    return in_child(lambda marker: os.execv("/bin/sh", ["sh", "-c", "exit 0"]))


@attempt
def spawn_a_shell():
    os.posix_spawn("/bin/sh", ["sh", "-c", "exit 0"], {})
    return True


@attempt
def execute_through_the_loader():
    loader = "/lib64/ld-linux-x86-64.so.2"
    return in_child(lambda marker: os.execv(loader, [loader, "/bin/sh", "-c", "exit 0"]))


@attempt
def execute_itself():
    return in_child(lambda marker: os.execv("/proc/self/exe", ["python", "-c", ""]))


@attempt
def execute_from_memory():
    file = os.memfd_create("x", 0)
    with open("/bin/true", "rb") as program:
        os.write(file, program.read())

    def run(marker):
        argv = (ctypes.c_char_p * 2)(b"true", None)
        call(322, file, b"", argv, (ctypes.c_char_p * 1)(None), 0x1000)

    return in_child(run)


@attempt
def execute_by_the_known_number():
    program = os.open("/bin/true", os.O_RDONLY)
    number = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def run(marker):
        os.dup2(program, number)
        argv = (ctypes.c_char_p * 2)(b"true", None)
        call(322, number, b"", argv, (ctypes.c_char_p * 1)(None), 0x1000)

    return in_child(run)


@attempt
def execute_from_tmp():
    with open(TMP + "/script", "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    try:
        os.chmod(TMP + "/script", 0o755)
    except OSError:
        pass
    return in_child(lambda marker: os.execv(TMP + "/script", ["script"]))
