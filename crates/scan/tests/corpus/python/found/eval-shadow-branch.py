# a definition that never runs hides nothing
if False:
    def eval(text):
        return text
eval("1")  # <-
