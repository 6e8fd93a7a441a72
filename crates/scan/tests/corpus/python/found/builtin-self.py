# built-in names behind a built-in function
print.__self__.eval("1")  # <-
