# a variable called os
def name(platform):
    os = platform.lower()
    return os.strip()
