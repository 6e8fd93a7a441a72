# eval handed to another function
list(map(eval, ["1"]))  # <-
