# an own function called eval
def eval(text):
    return len(text)

eval("abc")
