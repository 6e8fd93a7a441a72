# Attempts of a tool that may write the folder in which a project lies, with repositories and packages deep in it. Follows
# guard.py and attack.py, whose attempts it replaces.
ROOT = AT["writable"]
NAMES = [".git", ".toolcrib", ".venv", "node_modules"]
DEEP = []


def deep(function):
    DEEP.append(function)
    return function


def plant(path):
    with open(path, "w") as file:
        file.write("planted")
    return True


def any_of(places, try_one):
    for place in places:
        try:
            if try_one(place):
                return place
        except OSError:
            pass
    return False


KEPT = [os.path.join(ROOT, place) for place in AT["kept"]]


@deep
def write_into_what_is_kept():
    return any_of(KEPT, lambda kept: plant(kept + "/planted"))


@deep
def change_what_is_kept():
    return any_of(KEPT, lambda kept: plant(kept + "/config"))


@deep
def rename_what_is_kept():
    return any_of(KEPT, lambda kept: os.rename(kept, kept + "-gone") or True)


@deep
def rename_a_folder_above():
    def above(kept):
        folder = os.path.dirname(kept)
        while len(folder) > len(ROOT):
            try:
                os.rename(folder, folder + "-moved")
                return True
            except OSError:
                folder = os.path.dirname(folder)
        return False

    return any_of(KEPT, above)


@deep
def exchange_a_folder_above():
    def above(kept):
        folder = os.path.dirname(kept)
        other = os.path.join(ROOT, "free/other")
        os.makedirs(other, exist_ok=True)
        return len(folder) > len(ROOT) and call(316, -100, os.fsencode(folder), -100, os.fsencode(other), 2) == 0

    return any_of(KEPT, above)


@deep
def remove_what_is_kept():
    import shutil

    def gone(kept):
        shutil.rmtree(kept, ignore_errors=True)
        return not os.path.exists(kept + "/config")

    return any_of(KEPT, gone)


@deep
def link_a_kept_file_to_where_it_is_written():
    def linked(kept):
        other = os.path.join(ROOT, "free/linked-%d" % len(kept))
        os.link(kept + "/config", other)
        return plant(other)

    return any_of(KEPT, linked)


@deep
def reach_what_is_kept_by_a_link():
    def linked(kept):
        other = os.path.join(ROOT, "free/way-%d" % len(kept))
        os.symlink(kept, other)
        return plant(other + "/planted")

    return any_of(KEPT, linked)


@deep
def mount_points_are_unmounted():
    return any_of(KEPT, lambda kept: call(166, os.fsencode(kept), 2) == 0)


# And what must work.
with open(ROOT + "/free/made", "w") as file:
    file.write("by the tool")
print("write_the_rest\theld\tas granted", flush=True)

ATTEMPTS[:] = DEEP
run(ATTEMPTS)
