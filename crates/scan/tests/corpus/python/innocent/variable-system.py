# an attribute called system
def prompt(messages):
    return messages.system("be kind")
