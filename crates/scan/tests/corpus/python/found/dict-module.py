# a module's names through __dict__
import logging
logging.__dict__["sys"]  # <-
