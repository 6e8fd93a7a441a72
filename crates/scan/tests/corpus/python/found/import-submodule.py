# a submodule of a banned module
import os.path  # <-
