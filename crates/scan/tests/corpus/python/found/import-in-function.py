# an import inside of a function
def go():
    import socket  # <-
    return socket
