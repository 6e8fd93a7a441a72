# a network put into evaluation mode
def run(model):
    model.eval()
