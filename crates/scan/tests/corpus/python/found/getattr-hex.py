# a name from hex digits
import logging
getattr(logging, bytes.fromhex("6f73").decode())  # <-
