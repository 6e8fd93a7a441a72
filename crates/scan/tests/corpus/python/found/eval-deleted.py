# an own definition that is deleted again
def eval(text):
    return text
del eval
eval("1")  # <-
