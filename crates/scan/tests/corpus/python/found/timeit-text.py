# a string that timeit runs
import timeit
timeit.timeit("__import__('os')")  # <-
