# writing is not running
import pickle
DATA = pickle.dumps([1])
