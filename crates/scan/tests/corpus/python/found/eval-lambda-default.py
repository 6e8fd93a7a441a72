# eval as a default of a lambda
run = lambda text, f=eval: f(text)  # <-
