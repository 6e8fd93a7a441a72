# data in base64
import base64
DATA = base64.b64decode("aGVsbG8gd29ybGQ=").decode()
