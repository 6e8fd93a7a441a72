# built-in names under another name
b = __builtins__  # <-
b["ev" + "al"]("1")  # <-
