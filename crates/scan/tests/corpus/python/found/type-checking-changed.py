# a branch that is said to be for type checkers only
import typing
typing.TYPE_CHECKING = True  # <-
