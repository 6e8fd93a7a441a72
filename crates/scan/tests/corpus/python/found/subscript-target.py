# on the left of an assignment
table = {}
table[eval("1")] = 2  # <-
