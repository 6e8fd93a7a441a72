# a module whose name comes from a file
import logging

def go(path):
    with open(path) as file:
        return getattr(logging, file.read().strip())
