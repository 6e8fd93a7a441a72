# in the annotation of a variable
x: eval("int") = 2  # <-
