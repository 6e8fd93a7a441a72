# a name put together in a loop
import logging

def go():
    name = ""
    for code in (111, 115):
        name = chr(code) if not name else name + chr(code)
    return getattr(logging, name)
