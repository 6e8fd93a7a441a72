# compile taken from re
from re import compile
WORD = compile(r"\w+")
