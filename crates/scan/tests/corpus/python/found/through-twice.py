# by way of two modules
import re
re.enum.sys.modules  # <-
