# all classes, from a string
found = "".__class__.__mro__[1].__subclasses__()  # <-
