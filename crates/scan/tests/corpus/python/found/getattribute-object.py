# by object.__getattribute__
import logging
object.__getattribute__(logging, "o" "s")  # <-
