"""What several tools of this folder use. A name that begins with `_` is no tool."""


def counted(number: int, word: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
