# from a submodule of a banned package
from concurrent.futures import ThreadPoolExecutor  # <-
