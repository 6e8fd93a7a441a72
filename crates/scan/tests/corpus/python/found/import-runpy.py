# runs other files
import runpy  # <-
runpy.run_path("x.py")  # <-
