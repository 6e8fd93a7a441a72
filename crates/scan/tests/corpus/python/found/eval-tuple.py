# eval bound in a tuple
a, b = len, eval  # <-
b("1")  # <-
