# os by way of pathlib
import pathlib
pathlib.os.system("ls")  # <-
