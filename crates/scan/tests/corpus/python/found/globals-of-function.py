# a function's globals
def own():
    pass
names = own.__globals__  # <-
