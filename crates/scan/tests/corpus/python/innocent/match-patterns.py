# patterns with famous names
def pick(event):
    match event:
        case {"exec": exec, **os}:
            return exec, os
        case [socket, *sys]:
            return socket, sys
        case str() as eval:
            return eval
