# a plain import of a banned module
import os  # <-
