# getattr with a plain name
def read(config):
    return getattr(config, "name", None) or getattr(config, "size")
