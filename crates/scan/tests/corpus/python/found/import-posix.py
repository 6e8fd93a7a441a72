# what os is made of
import posix  # <-

posix.system("ls")  # <-
