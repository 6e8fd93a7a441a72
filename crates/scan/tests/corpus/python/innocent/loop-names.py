# loop variables with famous names
def count(rows):
    for os, sys in rows:
        print(os, sys)
    return [socket for socket in rows]
