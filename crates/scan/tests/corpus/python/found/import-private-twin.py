# the C half of a banned module
import _posixsubprocess  # <-
