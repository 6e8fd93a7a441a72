# a name from a list of codes
import logging
getattr(logging, "".join(chr(c) for c in [111, 115]))  # <-
