# through the module of built-in names
__builtins__.eval("1")  # <-
