# by operator.methodcaller
import operator
run = operator.methodcaller("popen", "ls")  # <-
