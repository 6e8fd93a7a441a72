# all classes, from an empty tuple
found = ().__class__.__base__.__subclasses__()  # <-
