# the loader that every module has
__loader__.load_module("os")  # <-
