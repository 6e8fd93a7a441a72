# getattr with a name in pieces
import pathlib
getattr(pathlib, "o" + "s").system("ls")  # <-
