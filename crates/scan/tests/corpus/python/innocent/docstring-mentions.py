# a docstring about subprocess
def go():
    """Does not `import subprocess`, and never calls exec()."""
