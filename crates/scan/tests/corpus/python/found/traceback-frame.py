# a frame by an exception
try:
    1 / 0
except ZeroDivisionError as error:
    names = error.__traceback__.tb_frame.f_builtins  # <-
