# an object's own attributes
class Point:
    def fields(self):
        return dict(self.__dict__), vars(self)
