# a name formatted the old way
import logging
getattr(logging, "%s%s" % ("o", "s"))  # <-
