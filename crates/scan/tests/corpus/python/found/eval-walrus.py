# eval bound in an expression
if (e := eval):  # <-
    e("1")  # <-
