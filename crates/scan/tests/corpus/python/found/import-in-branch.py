# an import in a branch
import json
if json:
    import pty  # <-
