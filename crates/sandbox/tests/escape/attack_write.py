# Attempts of a tool that may write the project. Follows guard.py, attack.py and attack_beyond.py, whose attempts it replaces.
PROJECT = AT["project"]
WRITES = []


def writing(function):
    WRITES.append(function)
    return function


def plant(path):
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    return True


@writing
def write_a_git_hook():
    return plant(PROJECT + "/.git/hooks/pre-commit")


@writing
def write_gits_settings():
    return plant(PROJECT + "/.git/config")


@writing
def write_a_tool():
    return plant(PROJECT + "/.toolcrib/evil.py")


@writing
def make_the_tools_folder():
    os.makedirs(PROJECT + "/.toolcrib/tools")
    return True


@writing
def put_another_git_in_place():
    os.rename(PROJECT + "/.git", PROJECT + "/src/old")
    os.mkdir(PROJECT + "/.git")
    return True


@writing
def move_a_folder_over_git():
    os.mkdir(PROJECT + "/src/new")
    os.rename(PROJECT + "/src/new", PROJECT + "/.git")
    return True


@writing
def remove_git():
    os.rmdir(PROJECT + "/.git/hooks")
    return True


@writing
def reach_git_by_a_link():
    os.symlink("../.git", PROJECT + "/src/link")
    return plant(PROJECT + "/src/link/hooks/post-commit")


@writing
def link_a_git_file():
    os.link(PROJECT + "/.git/config", PROJECT + "/src/config")
    return plant(PROJECT + "/src/config")


@writing
def swap_git_in_a_race():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try:
            os.rename(PROJECT + "/.git", PROJECT + "/src/x")
            return True
        except OSError:
            pass
        try:
            os.symlink(AT["secret"], PROJECT + "/src/s")
            os.replace(PROJECT + "/src/s", PROJECT + "/.toolcrib")
            return True
        except OSError:
            pass
    return False


@writing
def exchange_folders():
    return call(316, -100, os.fsencode(PROJECT + "/src"), -100, os.fsencode(PROJECT + "/.git"), 2) == 0


@writing
def write_through_a_link_out():
    return plant(PROJECT + "/outward")


@writing
def go_up_and_write():
    return plant(os.path.join(PROJECT, "..", "home", "planted"))


@writing
def write_beside_the_project():
    return plant(os.path.dirname(PROJECT) + "/planted")


@writing
def make_a_program_that_runs_as_its_owner():
    path = PROJECT + "/src/su"
    plant(path)
    try:
        os.chmod(path, 0o4755)
    except OSError:
        pass
    return os.stat(path).st_mode & 0o6000


@writing
def create_a_program_that_runs_as_its_owner():
    path = PROJECT + "/src/su2"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    return os.stat(path).st_mode & 0o6000


@writing
def create_a_nameless_program_that_runs_as_its_owner():
    descriptor = os.open(PROJECT + "/src", os.O_TMPFILE | os.O_WRONLY, 0o4755)
    return os.fstat(descriptor).st_mode & 0o6000


@writing
def create_a_nameless_program_for_the_group():
    descriptor = os.open(PROJECT + "/src", os.O_TMPFILE | os.O_RDWR, 0o2755)
    return os.fstat(descriptor).st_mode & 0o6000


@writing
def give_a_file_to_root():
    path = PROJECT + "/src/given"
    plant(path)
    os.chown(path, 0, 0)
    return os.getuid() != 0


@writing
def mount_over_git():
    if os.getuid() == 0:
        return False
    return call(166, os.fsencode(PROJECT + "/.git"), 2) == 0


# And what must work.
with open(PROJECT + "/src/made", "w") as file:
    file.write("by the tool")
with open(PROJECT + "/data.txt", "a") as file:
    file.write("more")
print("write_the_project\theld\tas granted", flush=True)

ATTEMPTS[:] = WRITES
run(ATTEMPTS)
