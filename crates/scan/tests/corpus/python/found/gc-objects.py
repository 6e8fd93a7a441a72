# whatever lies in memory
import gc
found = gc.get_objects()  # <-
