# keywords with famous names
def run(client):
    return client.start(os="linux", exec=True, eval=1, compile="x")
