# the globals of somebody else's method
import warnings
names = warnings.catch_warnings.__init__.__globals__  # <-
