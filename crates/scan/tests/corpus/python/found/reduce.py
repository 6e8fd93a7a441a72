# a chain of names
import functools
functools.reduce(getattr, ["os", "system"], __import__("logging"))  # <-
