# eval under another name
e = eval  # <-
e("1")  # <-
