# in the expression of an f-string
print(f"{eval('1')}")  # <-
