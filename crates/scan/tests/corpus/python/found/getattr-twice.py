# two names in pieces
import logging
run = getattr(getattr(logging, "so"[::-1]), "metsys"[::-1])  # <-
