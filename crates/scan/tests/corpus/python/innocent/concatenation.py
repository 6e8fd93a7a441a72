# strings put together
NAMES = ["o" + "s", "ev" + "al", "".join(["sys", "tem"])]
