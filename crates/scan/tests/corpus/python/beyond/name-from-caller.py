# an attribute whose name comes with the call
def go(thing, name):
    return getattr(thing, name)()
