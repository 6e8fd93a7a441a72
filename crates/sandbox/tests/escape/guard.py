# Every attack begins with this. It refuses to go on, with code 99, unless walls stand around it.
import os
import sys


def walls_stand():
    if os.environ.get("TOOLCRIB_TEST_CANARY") != "behind walls":
        return False
    try:
        with open(os.environ["TOOLCRIB_TEST_MARKER"]) as marker:
            marker.read()
        return False
    except KeyError:
        return False
    except OSError:
        pass
    with open("/proc/self/status") as status:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    return fields.get("Seccomp") == "2" and fields.get("NoNewPrivs") == "1" and fields.get("CapEff") == "0" * 16


if not walls_stand():
    sys.stderr.write("no walls, no attack\n")
    os._exit(99)
print("canary\theld\t", flush=True)
