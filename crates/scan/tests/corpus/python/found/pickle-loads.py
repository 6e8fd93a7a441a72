# code that comes with data
import pickle
pickle.loads(b"")  # <-
