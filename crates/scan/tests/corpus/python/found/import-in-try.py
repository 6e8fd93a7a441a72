# an import that may fail
try:
    import ctypes  # <-
except ImportError:
    ctypes = None
