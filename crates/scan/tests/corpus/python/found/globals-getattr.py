# a function's globals by a string
def own():
    pass
names = getattr(own, "__globals__")  # <-
