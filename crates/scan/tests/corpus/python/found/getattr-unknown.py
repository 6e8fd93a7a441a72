# a name in pieces on something unknown
def go(thing):
    return getattr(thing, "sys" + "tem")("ls")  # <-
