# out of a dictionary
table = {"run": eval}  # <-
