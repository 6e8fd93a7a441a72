# a name with a letter replaced
import logging
getattr(logging, "oz".replace("z", "s"))  # <-
