# an interpreter in the interpreter
import code  # <-
code.interact()  # <-
