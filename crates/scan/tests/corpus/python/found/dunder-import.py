# the function behind import
__import__("os").system("ls")  # <-
