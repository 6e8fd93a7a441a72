# a name from mapped codes
import logging
getattr(logging, "".join(map(chr, (111, 115))))  # <-
