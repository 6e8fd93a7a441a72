# eval in a comprehension
values = [eval(text) for text in ["1", "2"]]  # <-
