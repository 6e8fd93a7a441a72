# the module that has eval
import builtins  # <-
builtins.eval("1")  # <-
