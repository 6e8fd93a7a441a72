# an alias that is later something else
import json as os

def dump(x):
    return os.dumps(x)
