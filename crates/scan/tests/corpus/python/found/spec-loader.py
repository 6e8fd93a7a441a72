# the loader by way of the spec
__spec__.loader.load_module("os")  # <-
