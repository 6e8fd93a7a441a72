# exec as a default of a function
def run(text, f=exec):  # <-
    f(text)  # <-
