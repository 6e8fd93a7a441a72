"""`python3 -X utf8 <folder>/toolcrib_host`: the folder has this package and `toolcrib` in it."""

import os
import sys

if __name__ == "__main__":
    # The interpreter put this package's own folder first; what is in it must not be importable by itself. Nor is
    # what lies
    # in the folder where the process starts, which is the project.
    here = os.path.dirname(os.path.abspath(__file__))
    unwanted = (here, os.getcwd())
    sys.path[:] = [os.path.dirname(here), *(path for path in sys.path if os.path.abspath(path) not in unwanted)]

    from toolcrib_host.serve import main

    main()
