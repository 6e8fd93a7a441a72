# code objects from bytes
import marshal
marshal.loads(b"")  # <-
