# importlib by name
from importlib import import_module  # <-
import_module("os")  # <-
