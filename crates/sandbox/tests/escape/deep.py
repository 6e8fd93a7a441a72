# A tool that leaves folders in its private tmp, deeper than any path can say, and links to what is not its own. Follows
# guard.py.
import json

AT = json.loads(os.environ["TOOLCRIB_TEST_PLACES"])
os.chdir(os.environ["TMPDIR"])
os.symlink(AT["project"], "to-the-project")
os.mkdir("0")
os.symlink(AT["home"], "0/to-the-home")
os.symlink(AT["secret"], "0/to-a-secret")
# Each is put into the next one, so that no path is ever long.
for number in range(1, AT["depth"]):
    os.mkdir(str(number))
    os.rename(str(number - 1), "%d/d" % number)
print("made\theld\t%d" % AT["depth"], flush=True)
