# a name from base64
import base64, logging
getattr(logging, base64.b64decode("b3M=").decode())  # <-
