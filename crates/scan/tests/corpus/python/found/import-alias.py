# an import under another name, used later
import subprocess as harmless  # <-

def go():
    return harmless.run(["ls"])  # <-
