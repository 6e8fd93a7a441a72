# a module's names through vars
import logging
vars(logging)["os"].system("ls")  # <-
