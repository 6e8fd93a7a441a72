# everything of a banned module
from os import *  # <-
