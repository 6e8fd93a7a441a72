# loaded modules through a dictionary
import sys as s  # <-
s.__dict__["modules"]["os"]  # <-
