# all classes, from a class of one's own
class Own:
    pass
found = Own.__bases__[0].__subclasses__()  # <-
