# letters by number
LETTERS = "".join(chr(97 + n) for n in range(26))
