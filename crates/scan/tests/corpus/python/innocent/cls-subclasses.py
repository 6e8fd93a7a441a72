# the same from inside
class Plugin:
    @classmethod
    def all(cls):
        return cls.__subclasses__()
