# importlib under another name
import importlib as i  # <-
os = i.import_module("os")  # <-
os.system("ls")  # <-
