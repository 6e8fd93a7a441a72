"""Counts lines, and tells how far it is. Async calls run side by side in one process."""

import asyncio
from pathlib import Path

from toolcrib import Context, tool

from ._shared import counted


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8", errors="replace").splitlines())


@tool(name="count-lines", read_only=True)
async def count_lines(ctx: Context, pattern: str = "*.md") -> str:
    """Counts the lines of the project's files.

    Args:
        pattern: Which files, such as `*.md`.
    """
    files = sorted(file for file in Path(ctx.directory).rglob(pattern) if file.is_file())
    if not files:
        raise FileNotFoundError(f"no file of the project is named {pattern}")
    total = 0
    for number, file in enumerate(files):
        ctx.progress(number, total=len(files), message=file.name)
        total += await asyncio.to_thread(lines_of, file)
    return f"{counted(total, 'line')} in {counted(len(files), 'file')}"


@tool(name="longest-line", read_only=True)
def longest_line(path: Path, ctx: Context) -> dict:
    """Finds the longest line of a file.

    Args:
        path: The file, from the project's folder.
    """
    lines = (Path(ctx.directory) / path).read_text(encoding="utf-8").splitlines()
    number, line = max(enumerate(lines, 1), key=lambda pair: len(pair[1]), default=(0, ""))
    return {"title": counted(len(lines), "line"), "output": line, "metadata": {"line": number, "length": len(line)}}
