# a name from numbers
import logging
getattr(logging, bytes([111, 115]).decode())  # <-
