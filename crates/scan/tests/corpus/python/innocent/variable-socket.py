# a variable called socket
def talk(connect):
    socket = connect()
    socket.send(b"hi")
    return socket.recv(10)
