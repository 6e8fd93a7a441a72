# a name kept in an attribute
import logging

class Holder:
    name = "o" + "s"

def go(holder: Holder):
    return getattr(logging, holder.name)
