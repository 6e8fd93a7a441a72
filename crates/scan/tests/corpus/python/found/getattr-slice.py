# a name cut out of another word
import logging
getattr(logging, "cost"[1:3])  # <-
