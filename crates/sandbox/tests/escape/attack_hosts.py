# Attempts of a tool that may reach one host through the proxy. Follows guard.py, attack.py and attack_beyond.py.
import urllib.request

PROXY = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
PROXY = (PROXY[0], int(PROXY[1]))
HOSTS = []


def reaching(function):
    HOSTS.append(function)
    return function


def ask_proxy(text):
    with socket.create_connection(PROXY, timeout=5) as sock:
        sock.sendall(text.encode())
        answer = b""
        while True:
            part = sock.recv(4096)
            if not part:
                return answer
            answer += part
            if b"established" in answer:
                return answer


def tunnel(target):
    return b" 200 " in ask_proxy("CONNECT %s HTTP/1.1\r\n\r\n" % target)


def plain(target, extra=""):
    return b"forbidden fruit" in ask_proxy("GET http://%s/ HTTP/1.1\r\n%s\r\n" % (target, extra))


@reaching
def tunnel_to_another_port():
    return tunnel("127.0.0.1:%d" % AT["tcp"])


@reaching
def tunnel_by_another_name():
    return tunnel("localhost:%d" % AT["tcp"])


@reaching
def tunnel_to_numbers():
    names = ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0", "0.0.0.0", "[::]"]
    return [name for name in names if tunnel("%s:%d" % (name, AT["tcp"]))]


@reaching
def tunnel_to_metadata():
    return tunnel("169.254.169.254:80") or tunnel("169.254.169.254:443")


@reaching
def tunnel_to_the_machines_name():
    return tunnel("%s:%d" % (AT["name"], AT["tcp"]))


@reaching
def tunnel_to_a_name_that_leads_home():
    return tunnel("%s:443" % AT["name"])


@reaching
def ask_plainly_for_another():
    return plain("127.0.0.1:%d" % AT["tcp"])


@reaching
def ask_with_a_users_name():
    return plain("127.0.0.1:%d@127.0.0.1:%d" % (AT["served"], AT["tcp"]))


@reaching
def ask_with_two_hosts():
    return plain("127.0.0.1:%d" % AT["served"], "Host: 127.0.0.1:%d\r\n" % AT["tcp"])


@reaching
def ask_with_a_second_request():
    text = "GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\nGET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n"
    return b"forbidden fruit" in ask_proxy(text % (AT["served"], AT["tcp"]))


@reaching
def ask_with_a_broken_line():
    return plain("127.0.0.1:%d/ HTTP/1.1\r\nX: http://127.0.0.1:%d" % (AT["served"], AT["tcp"]))


@reaching
def be_redirected():
    answer = urllib.request.urlopen("http://127.0.0.1:%d/redirect" % AT["served"], timeout=5).read()
    return b"forbidden fruit" in answer


@reaching
def connect_past_the_proxy():
    return tcp(socket.AF_INET, ("127.0.0.1", AT["tcp"]))


@reaching
def connect_to_the_allowed_host_past_the_proxy():
    return tcp(socket.AF_INET, ("127.0.0.1", AT["served"]))


@reaching
def connect_past_the_proxy_over_ipv6():
    return tcp(socket.AF_INET6, ("::ffff:127.0.0.1", AT["tcp"]))


@reaching
def swap_the_address_while_connecting():
    # What the checker reads and what the kernel would read must not differ.
    good = struct.pack("=H", 2) + struct.pack("!H", PROXY[1]) + socket.inet_aton("127.0.0.1") + bytes(8)
    bad = struct.pack("=H", 2) + struct.pack("!H", AT["tcp"]) + socket.inet_aton("127.0.0.1") + bytes(8)
    address = ctypes.create_string_buffer(good, 16)
    end = time.monotonic() + 2

    def swap():
        while time.monotonic() < end:
            ctypes.memmove(address, bad, 16)
            ctypes.memmove(address, good, 16)

    thread = threading.Thread(target=swap)
    thread.start()
    got = False
    while time.monotonic() < end:
        sock = socket.socket()
        if libc.connect(sock.fileno(), address, 16) == 0:
            try:
                got = got or sock.getpeername()[1] == AT["tcp"]
            except OSError:
                pass
        sock.close()
    thread.join()
    return got


@reaching
def use_the_connection_for_another():
    # A socket that the proxy's connection was put into, connected again.
    sock = socket.socket()
    sock.connect(PROXY)
    unspecified = struct.pack("=H", 0) + bytes(14)
    libc.connect(sock.fileno(), unspecified, 16)
    sock.settimeout(3)
    sock.connect(("127.0.0.1", AT["tcp"]))
    return True


for function in [
    connect_over_mptcp,
    connect_by_fast_open,
    connect_by_sendmsg_fast_open,
    send_a_datagram,
    listen,
    ask_netlink,
    open_rare_sockets,
    reach_an_abstract_socket,
    reach_the_cribs_socket,
    set_up_io_uring,
    read_a_secret,
    execute_a_shell,
]:
    HOSTS.append(function)

# And what must work: the granted host, plainly and through a tunnel.
served = "http://127.0.0.1:%d/" % AT["served"]
answer = urllib.request.urlopen(served, timeout=10).read()
print("plain\t%s\t%r" % ("held" if b"granted" in answer else "BROKEN", answer[:40]), flush=True)
print("tunnel\t%s\t" % ("held" if tunnel("127.0.0.1:%d" % AT["served"]) else "BROKEN"), flush=True)

ATTEMPTS[:] = HOSTS
run(ATTEMPTS)
