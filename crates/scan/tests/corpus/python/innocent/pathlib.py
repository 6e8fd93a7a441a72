# files, read the plain way
from pathlib import Path

def read(name: str) -> str:
    return Path(name).read_text()
