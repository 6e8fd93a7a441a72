# loads of something harmless
import json
DATA = json.loads("{}")
