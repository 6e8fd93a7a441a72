# a function that says the name is the module's
def go():
    global eval
    if False:
        eval = None
    return eval("1")  # <-
