# the network, which only the sandbox decides on
import urllib.request

def fetch(url):
    return urllib.request.urlopen(url).read()
