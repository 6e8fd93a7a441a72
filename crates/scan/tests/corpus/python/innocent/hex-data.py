# data in hex
DATA = bytes.fromhex("00ff").hex()
