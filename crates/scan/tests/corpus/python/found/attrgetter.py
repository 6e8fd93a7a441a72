# by operator.attrgetter
from operator import attrgetter
run = attrgetter("system")  # <-
