# starts processes
from multiprocessing import Process  # <-
