# through functools.partial
from functools import partial
run = partial(exec)  # <-
