# a function taken under another name and called
from subprocess import check_output as read  # <-

read(["ls"])  # <-
