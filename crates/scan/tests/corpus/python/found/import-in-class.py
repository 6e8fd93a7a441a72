# an import in a class body
class Holder:
    import shutil  # <-
