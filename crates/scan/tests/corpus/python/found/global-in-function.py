# an import that later functions use
import shutil as s  # <-

def go():
    return getattr(s, "o" + "s")  # <-
