# a module that is loaded already
import sys  # <-
sys.modules["os"].system("ls")  # <-
