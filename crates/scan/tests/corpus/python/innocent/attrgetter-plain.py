# sorting by an attribute
from operator import attrgetter, itemgetter

def order(rows):
    return sorted(rows, key=attrgetter("name.first")), sorted(rows, key=itemgetter("os"))
