# a call in an annotation that is evaluated later
def go(x: "__import__('os')"):  # <-
    return x
