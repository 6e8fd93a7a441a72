# getattr with a name that depends on the input
class Visitor:
    def visit(self, node):
        return getattr(self, "visit_" + node.kind)(node)
