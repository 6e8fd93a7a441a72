# a module that is loaded already, with get
from logging import sys as s  # <-
s.modules.get("subprocess")  # <-
