# a plain call
exec("x = 1")  # <-
