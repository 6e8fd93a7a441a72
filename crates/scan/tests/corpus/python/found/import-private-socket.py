# what socket is made of
import _socket  # <-
