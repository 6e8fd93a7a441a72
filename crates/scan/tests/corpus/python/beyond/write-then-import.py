# a file that is written and imported afterwards
def go():
    with open("later.py", "w") as file:
        file.write("import o" "s")
    import later
    return later
