# stops in a debugger
breakpoint()  # <-
