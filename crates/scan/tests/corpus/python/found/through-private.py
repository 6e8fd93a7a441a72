# os by way of a private name
import random
random._os.system("ls")  # <-
