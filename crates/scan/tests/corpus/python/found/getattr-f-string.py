# a name from an f-string
import logging
part = "o"
getattr(logging, f"{part}s")  # <-
