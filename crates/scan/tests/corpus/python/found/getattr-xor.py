# a name behind arithmetic
import logging
getattr(logging, chr(110 ^ 1) + chr(100 + 15))  # <-
