# a regular expression
import re
WORD = re.compile(r"\w+")
