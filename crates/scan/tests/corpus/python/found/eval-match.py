# eval in a match statement
def pick(kind):
    match kind:
        case "run":
            return eval("1")  # <-
