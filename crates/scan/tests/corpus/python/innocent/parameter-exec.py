# a parameter called exec
def run(exec, eval=None):
    return exec(1) if eval is None else eval(2)
