# all classes from a class made on the spot
type("X", (object,), {})().__class__.__mro__[1].__subclasses__()  # <-
