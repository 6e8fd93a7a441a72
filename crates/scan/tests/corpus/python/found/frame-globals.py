# a frame's globals
import inspect
names = inspect.currentframe().f_back.f_globals  # <-
