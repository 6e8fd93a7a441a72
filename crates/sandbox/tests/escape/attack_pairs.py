# Attempts of a tool to make pairs of sockets that send to any path, as those for datagrams do. Follows guard.py and
# attack.py, whose attempts it replaces.
UNIX = socket.AF_UNIX
PAIRS = []


def pairing(function):
    PAIRS.append(function)
    return function


@pairing
def a_pair_for_datagrams():
    return socket.socketpair(UNIX, socket.SOCK_DGRAM)


@pairing
def a_pair_for_datagrams_that_does_not_wait():
    return socket.socketpair(UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)


@pairing
def a_raw_pair():
    return socket.socketpair(UNIX, socket.SOCK_RAW)


@pairing
def a_pair_for_packets_that_sends_elsewhere():
    one, other = socket.socketpair(UNIX, socket.SOCK_SEQPACKET)
    one.sendto(b"through", "/nowhere/at/all")
    if other.recv(16) != b"through":
        return "a packet went elsewhere"
    one.connect("/nowhere/at/all")
    return "it was connected elsewhere"


@pairing
def a_pair_for_datagrams_by_the_call_itself():
    # The kernel reads the lower half of a number alone.
    kinds = [kind | high << 32 for kind in (2, 3, 4, 6, 10) for high in (0, 1)]
    pair = (ctypes.c_int * 2)()
    for kind in kinds:
        try:
            if call(53, ctypes.c_long(1), ctypes.c_long(kind), ctypes.c_long(0), pair) == 0:
                return kind
        except OSError:
            pass
    return False


# And what must work.
one, other = socket.socketpair()
one.sendall(b"through")
print("a_pair_of_streams\t%s\t" % ("held" if other.recv(16) == b"through" else "BROKEN"), flush=True)
one, other = socket.socketpair(UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
one.sendall(b"through")
print("one_that_does_not_wait\t%s\t" % ("held" if other.recv(16) == b"through" else "BROKEN"), flush=True)

one, other = socket.socketpair(UNIX, socket.SOCK_SEQPACKET)
one.sendall(b"through")
print("a_pair_for_packets\t%s\t" % ("held" if other.recv(16) == b"through" else "BROKEN"), flush=True)

ATTEMPTS[:] = PAIRS
run(ATTEMPTS)
