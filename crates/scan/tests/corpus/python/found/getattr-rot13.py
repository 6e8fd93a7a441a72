# a name behind rot13
import codecs, logging
getattr(logging, codecs.decode("bf", "rot13"))  # <-
