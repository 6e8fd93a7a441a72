# asking whether something is a function
import types

def is_function(x):
    return isinstance(x, (types.FunctionType, types.CodeType))
