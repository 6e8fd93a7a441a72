# a module that comes as an argument
def go(module):
    return module.run(["ls"], shell=True)
