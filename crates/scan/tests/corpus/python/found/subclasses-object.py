# all classes, from object itself
found = object.__subclasses__()  # <-
