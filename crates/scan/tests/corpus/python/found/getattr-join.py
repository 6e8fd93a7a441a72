# a name joined
import logging
getattr(logging, "".join(["o", "s"]))  # <-
