# Attempts of a tool that may execute other programs. Follows guard.py, attack.py and attack_beyond.py.
import subprocess

RUNS = []


def running(function):
    RUNS.append(function)
    return function


def sh(script):
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, timeout=20)
    return done.returncode == 0 and done.stdout.decode()


@running
def a_shell_reads_a_secret():
    return sh("cat '%s'" % AT["secret"])


@running
def a_shell_lists_the_home():
    return sh("ls '%s'" % AT["home"])


@running
def a_shell_writes_elsewhere():
    return sh("echo x > '%s/planted' && echo out" % AT["home"])


@running
def a_shell_writes_the_project():
    return sh("echo x >> '%s/data.txt' && echo out" % AT["project"])


@running
def a_shell_makes_namespaces():
    return sh("unshare -Ur true && echo out")


@running
def a_shell_reads_the_cribs_environment():
    return sh("tr '\\0' ' ' < /proc/%d/environ" % AT["crib_pid"])


@running
def a_shell_signals_another():
    return sh("kill %d && echo out" % AT["victim"])


@running
def a_shell_connects():
    return sh("curl -s --max-time 3 --noproxy '*' http://127.0.0.1:%d/" % AT["tcp"])


@running
def a_setuid_program_runs():
    return sh("for p in su mount umount passwd newgrp; do [ -u /usr/bin/$p ] && /usr/bin/$p --version >/dev/null 2>&1; done; "
              "grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo out")


@running
def a_daemon_leaves():
    # The test counts what is left.
    script = "(setsid sh -c 'sleep 600' >/dev/null 2>&1 &); (sh -c 'trap \"\" HUP TERM; sleep 600' >/dev/null 2>&1 &)"
    sh(script)
    return False


# And what must work.
print("run_a_shell\t%s\t" % ("held" if sh("echo works") == "works\n" else "BROKEN"), flush=True)

ATTEMPTS[:] = RUNS
run(ATTEMPTS)
