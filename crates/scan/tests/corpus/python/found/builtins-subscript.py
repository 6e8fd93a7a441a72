# through the dictionary of built-in names
__builtins__["eval"]("1")  # <-
