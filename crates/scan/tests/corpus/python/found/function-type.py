# a function from a code object
import types
run = types.FunctionType(None, {})  # <-
