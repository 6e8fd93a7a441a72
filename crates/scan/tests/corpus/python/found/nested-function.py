# deep inside of functions
def outer():
    def middle():
        class Inner:
            def method(self):
                return [lambda: eval("1")]  # <-
        return Inner
    return middle
