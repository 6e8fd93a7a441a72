# a proxy
class Proxy:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)
