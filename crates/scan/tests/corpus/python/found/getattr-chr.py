# a name from character codes
import logging
getattr(logging, chr(111) + chr(115))  # <-
