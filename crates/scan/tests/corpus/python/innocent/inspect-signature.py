# the parameters of a function
import inspect

def names(f):
    return list(inspect.signature(f).parameters)
