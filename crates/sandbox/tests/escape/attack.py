# Attempts to get out, each in a function of its own that gives True, or something to show, if it got out. What raises
# was held. The test tells where things lie.
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time

AT = json.loads(os.environ["TOOLCRIB_TEST_PLACES"])
TMP = os.environ["TMPDIR"]
libc = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = []


def attempt(function):
    ATTEMPTS.append(function)
    return function


def call(number, *args):
    """A system call by its number on x86_64; raises what the kernel says."""
    libc.syscall.restype = ctypes.c_long
    given = libc.syscall(ctypes.c_long(number), *args)
    if given < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return given


def run(attempts):
    for function in attempts:
        try:
            got = function()
            word, shown = ("ESCAPED", repr(got)) if got else ("held", "")
        except BaseException as error:
            word, shown = "held", "%s: %s" % (type(error).__name__, error)
        line = shown.replace("\n", " ").replace("\t", " ")[:120]
        print("%s\t%s\t%s" % (function.__name__, word, line), flush=True)
    print("end\theld\t", flush=True)


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


# First, while nothing of its own is open.


@attempt
def use_inherited_descriptors():
    for number in range(3, 2048):
        try:
            return os.readlink("/proc/self/fd/%d" % number), number
        except OSError:
            pass
    return False


# Files.


@attempt
def read_a_secret():
    return read(AT["secret"])


@attempt
def read_the_users_key():
    return read(AT["home"] + "/.ssh/id")


@attempt
def read_shadow():
    return read("/etc/shadow")


@attempt
def list_the_home():
    return os.listdir(AT["home"])


@attempt
def see_that_a_secret_exists():
    return os.stat(AT["secret"])


@attempt
def read_the_cribs_database():
    return read(AT["crib"] + "/store.db")


@attempt
def list_the_machines_tmp():
    return AT["other_tmp"].split("/")[-1] in os.listdir(os.path.dirname(AT["other_tmp"]))


@attempt
def read_another_tools_tmp():
    return read(AT["other_tmp"] + "/notes")


@attempt
def write_elsewhere():
    with open(AT["home"] + "/planted", "w") as file:
        file.write("x")
    return os.path.exists(AT["home"] + "/planted")


@attempt
def truncate_a_secret():
    os.truncate(AT["secret"], 0)
    return True


@attempt
def write_the_project():
    with open(AT["project"] + "/data.txt", "a") as file:
        file.write("x")
    return True


@attempt
def create_in_the_project():
    os.mkdir(AT["project"] + "/planted")
    return True


@attempt
def empty_a_file_by_opening():
    os.close(os.open(AT["project"] + "/data.txt", os.O_RDONLY | os.O_TRUNC))
    return os.stat(AT["project"] + "/data.txt").st_size == 0


@attempt
def write_the_tool_itself():
    with open(__file__, "a") as file:
        file.write("#")
    return True


@attempt
def delete_from_the_project():
    os.unlink(AT["project"] + "/data.txt")
    return True


@attempt
def move_from_the_project():
    os.rename(AT["project"] + "/data.txt", TMP + "/moved")
    return True


@attempt
def change_a_mode_elsewhere():
    os.chmod(AT["secret"], 0o666)
    return os.stat(AT["secret"]).st_mode & 0o777 == 0o666


@attempt
def change_a_mode_in_the_project():
    os.chmod(AT["project"] + "/data.txt", 0o666)
    return os.stat(AT["project"] + "/data.txt").st_mode & 0o777 == 0o666


@attempt
def change_a_mode_by_descriptor():
    file = os.open(AT["project"] + "/data.txt", os.O_RDONLY)
    os.fchmod(file, 0o666)
    return os.fstat(file).st_mode & 0o777 == 0o666


@attempt
def change_times():
    os.utime(AT["project"] + "/data.txt", (1, 1))
    return os.stat(AT["project"] + "/data.txt").st_mtime == 1


@attempt
def change_times_by_descriptor():
    file = os.open(AT["project"] + "/data.txt", os.O_RDONLY)
    os.utime(file, (1, 1))
    return os.fstat(file).st_mtime == 1


@attempt
def set_an_attribute():
    os.setxattr(AT["project"] + "/data.txt", "user.x", b"1")
    return True


@attempt
def list_the_attributes_of_a_secret():
    return os.listxattr(AT["secret"])


@attempt
def list_the_attributes_of_a_secret_not_following():
    return os.listxattr(AT["secret"], follow_symlinks=False)


@attempt
def read_an_attribute_of_a_secret():
    return os.getxattr(AT["secret"], "user.toolcrib")


@attempt
def read_an_attribute_of_a_secret_not_following():
    return os.getxattr(AT["secret"], "user.toolcrib", follow_symlinks=False)


@attempt
def read_an_attribute_by_descriptor():
    return os.getxattr(os.open(AT["secret"], os.O_PATH), "user.toolcrib")


@attempt
def read_an_attribute_through_the_processs_own_links():
    held = os.open(AT["secret"], os.O_PATH)
    return os.getxattr("/proc/self/fd/%d" % held, "user.toolcrib")


@attempt
def list_attributes_by_the_newest_call():
    names = ctypes.create_string_buffer(64)
    return call(465, -100, os.fsencode(AT["secret"]), 0, names, 64)


@attempt
def read_an_attribute_by_the_newest_call():
    value = ctypes.create_string_buffer(64)
    into = struct.pack("QII", ctypes.addressof(value), 64, 0)
    return call(464, -100, os.fsencode(AT["secret"]), 0, b"user.toolcrib", into, 16)


@attempt
def set_file_flags():
    file = os.open(AT["project"] + "/data.txt", os.O_RDONLY)
    flags = struct.pack("l", 0x40)  # no dump
    fcntl.ioctl(file, 0x40086602, flags)
    return True


@attempt
def follow_a_link_to_a_secret():
    os.symlink(AT["secret"], TMP + "/link")
    return read(TMP + "/link")


@attempt
def link_a_secret_hard():
    os.link(AT["secret"], TMP + "/hard")
    return read(TMP + "/hard")


@attempt
def follow_a_link_in_the_project():
    return read(AT["project"] + "/outward")


@attempt
def go_up_from_the_project():
    return read(AT["project"] + "/../" + AT["secret"].split("/")[-2] + "/" + AT["secret"].split("/")[-1])


@attempt
def swap_links_in_a_race():
    place = TMP + "/race"
    end = time.monotonic() + 1

    def swap():
        at = 0
        while time.monotonic() < end:
            target = AT["secret"] if at % 2 else AT["project"] + "/data.txt"
            os.symlink(target, place + str(at % 7))
            os.replace(place + str(at % 7), place)
            at += 1

    thread = threading.Thread(target=swap)
    thread.start()
    got = False
    while time.monotonic() < end:
        try:
            got = got or b"secret" in read(place)
        except OSError:
            pass
    thread.join()
    return got


@attempt
def open_by_handle():
    handle = (ctypes.c_char * 136)()
    struct.pack_into("I", handle, 0, 128)
    mount = ctypes.c_int()
    call(303, -100, os.fsencode(AT["secret"]), handle, ctypes.byref(mount), 0)
    folder = os.open(AT["project"], os.O_RDONLY)
    return call(304, folder, handle, os.O_RDONLY) >= 0


@attempt
def watch_a_folder():
    watcher = call(294, 0)
    return call(254, watcher, os.fsencode(AT["home"]), ctypes.c_uint32(0xFFF)) >= 0


@attempt
def make_a_device():
    os.mknod(TMP + "/disk", 0o060666, os.makedev(8, 0))
    return True


@attempt
def open_memory_and_disks():
    for path in ["/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/kvm", "/dev/fuse", "/dev/tty", "/dev/ptmx"]:
        try:
            os.close(os.open(path, os.O_RDONLY))
            return path
        except OSError:
            pass
    return False


# /proc and /sys.


@attempt
def look_through_proc_self_root():
    return read("/proc/self/root" + AT["secret"])


@attempt
def look_through_proc_self_cwd():
    return read("/proc/self/cwd/../../../../../../.." + AT["secret"])


def of_the_crib(name):
    return read("/proc/%d/%s" % (AT["crib_pid"], name))


@attempt
def read_the_cribs_environment():
    return of_the_crib("environ")


@attempt
def read_the_cribs_command_line():
    return of_the_crib("cmdline")


@attempt
def read_the_cribs_memory_map():
    return of_the_crib("maps")


@attempt
def look_through_the_cribs_root():
    return of_the_crib("root" + AT["secret"])


@attempt
def list_the_cribs_descriptors():
    return os.listdir("/proc/%d/fd" % AT["crib_pid"])


@attempt
def look_through_the_parents_root():
    return read("/proc/%d/root%s" % (os.getppid(), AT["secret"]))


@attempt
def read_the_parents_environment():
    return read("/proc/%d/environ" % os.getppid())


@attempt
def write_a_kernel_setting():
    with open("/proc/sys/kernel/printk_ratelimit", "r+") as file:
        value = file.read()
        file.seek(0)
        file.write(value)
        file.flush()
    return True


@attempt
def write_sysfs():
    os.close(os.open("/sys/devices/system/cpu/cpu0/uevent", os.O_WRONLY))
    return True


@attempt
def read_the_kernels_log():
    return call(103, 3, (ctypes.c_char * 64)(), 64) > 0


@attempt
def find_a_secret_variable():
    return [name for name in os.environ if "SECRET" in name]
