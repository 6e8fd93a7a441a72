# a frame by a generator
numbers = (n for n in [1])
frame = numbers.gi_frame  # <-
