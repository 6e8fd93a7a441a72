# eval out of a list
tools = [len, eval]  # <-
tools[1]("1")  # <-
