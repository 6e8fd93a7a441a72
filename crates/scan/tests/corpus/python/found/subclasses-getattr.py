# all classes, by a string
found = getattr(object, "__subclasses__")()  # <-
