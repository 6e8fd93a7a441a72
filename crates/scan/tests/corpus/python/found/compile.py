# makes code from text
c = compile("1", "x", "eval")  # <-
