# a function that is timed
import timeit

def measure(f):
    return timeit.timeit(f)
