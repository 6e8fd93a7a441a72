"""`python3 -X utf8 <folder>/toolcrib_host`: the folder has this package and `toolcrib` in it."""

import os
import sys

if __name__ == "__main__":
    # The interpreter put this package's own folder first; what is in it must not be importable by itself.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(here), *(path for path in sys.path if os.path.abspath(path) != here)]

    from toolcrib_host.serve import main

    main()
