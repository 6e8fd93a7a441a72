# a name that an own function gives back
import logging

def name():
    return "o" + "s"

def go():
    return getattr(logging, name())
