# an installed package that starts processes itself
import some_package

def go():
    some_package.start("ls")
