# a name formatted
import logging
getattr(logging, "{}{}".format("o", "s"))  # <-
