# format strings
def greet(name):
    return "{0.first} {0.last} {kind[os]}".format(name, kind={"os": 1}) + "%s" % name
