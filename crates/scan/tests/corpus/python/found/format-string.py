# globals read by a format string
def own():
    pass
text = "{0.__globals__}".format(own)  # <-
