# a function taken from a banned module
from os import system  # <-
