# the function behind import, with a name in pieces
m = __import__("o" + "s")  # <-
