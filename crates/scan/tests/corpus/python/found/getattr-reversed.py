# a name written backwards
import logging
getattr(logging, "so"[::-1])  # <-
