# the file's own names
LIMIT = 3

def read():
    return globals()["LIMIT"]
