# an own function that is defined after its use
def go():
    return compile("x")

def compile(text):
    return text
