# the second of several imports
import json, sys  # <-
