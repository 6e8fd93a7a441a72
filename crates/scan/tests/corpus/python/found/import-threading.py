# starts threads
import threading  # <-
