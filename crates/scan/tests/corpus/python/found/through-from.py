# sys by way of another module
from logging import sys  # <-
