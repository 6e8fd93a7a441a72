# the names of all parents
def parents(kind):
    return [parent.__name__ for parent in kind.__mro__]
