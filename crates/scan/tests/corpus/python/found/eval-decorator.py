# eval as a decorator
@eval  # <-
def text():
    return "1"
