# in the type of an except
try:
    pass
except eval("ValueError"):  # <-
    pass
