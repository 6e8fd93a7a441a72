# built-in names behind a built-in function, as a dictionary
names = print.__self__  # <-
names.__dict__["eval"]("1")  # <-
