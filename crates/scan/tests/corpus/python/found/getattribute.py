# by __getattribute__ on the object
import logging
logging.__getattribute__("os")  # <-
