"""Reads docstrings in the styles of Google, NumPy and reST."""

from __future__ import annotations

import re

# Sections that describe parameters, or the fields of a class.
PARAMETERS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "attributes",
}
OTHERS = {
    "returns",
    "return",
    "yields",
    "yield",
    "raises",
    "raise",
    "warns",
    "warnings",
    "warning",
    "example",
    "examples",
    "note",
    "notes",
    "see also",
    "references",
    "todo",
    "methods",
    "receives",
}

FIELD = re.compile(r"[:@](\w+)(?:\s+([^:]*?))?:(?:\s+(.*)|$)")
FIELD_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword", "attr", "ivar"}
ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:(?:\s+(.*)|$)")
NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


def clean(text: str) -> list[str]:
    """The lines of a docstring without its indentation."""
    lines = text.expandtabs().splitlines()
    margin = min((indent(line) for line in lines[1:] if line.strip()), default=0)
    cleaned = [line.strip() if number == 0 else line[margin:].rstrip() for number, line in enumerate(lines)]
    while cleaned and not cleaned[0]:
        cleaned.pop(0)
    return cleaned


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def section(lines: list[str], number: int) -> str:
    """The lower-case title of the section that begins at this line, or nothing."""
    line = lines[number]
    if line.startswith(" "):
        return ""
    title = line.strip().lower()
    if title.endswith(":") and title[:-1] in PARAMETERS | OTHERS:
        return title[:-1]
    underline = lines[number + 1].strip() if number + 1 < len(lines) else ""
    if title in PARAMETERS | OTHERS and len(underline) >= 3 and set(underline) <= set("-="):
        return title
    return ""


def parse(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and what is said of each parameter."""
    lines = clean(text)
    summary: list[str] = []
    parameters: dict[str, str] = {}
    number, in_summary = 0, True
    while number < len(lines):
        title = section(lines, number)
        if title:
            in_summary = False
            number += 1
            underlined = number < len(lines) and set(lines[number].strip() or " ") <= set("-=")
            number += underlined
            body, number = block(lines, number, underlined)
            if title in PARAMETERS:
                parameters.update(entries(body, underlined))
            continue
        field = FIELD.match(lines[number])
        if field:
            in_summary = False
            number = take_field(lines, number, parameters)
            continue
        if in_summary and lines[number].strip():
            summary.append(lines[number].strip())
        elif summary:
            in_summary = False
        number += 1
    return " ".join(summary), parameters


def block(lines: list[str], number: int, underlined: bool) -> tuple[list[str], int]:
    """The lines of a section: indented ones in Google's style, up to the next title in NumPy's."""
    body: list[str] = []
    while number < len(lines):
        line = lines[number]
        if section(lines, number) or (not underlined and line and not line.startswith(" ")):
            break
        body.append(line)
        number += 1
    return body, number


def entries(body: list[str], underlined: bool) -> dict[str, str]:
    """What a section of parameters says of each."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    margin = min((indent(line) for line in body if line.strip()), default=0)
    pattern = NUMPY_ENTRY if underlined else ENTRY
    for line in body:
        match = pattern.match(line.strip()) if line.strip() and indent(line) == margin else None
        if match:
            names = [name.strip().lstrip("*") for name in match[1].split(",")]
            words = "" if underlined else (match[2] or "")
            for name in names:
                found[name] = [words] if words else []
        elif line.strip():
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(words) for name, words in found.items() if words}


def take_field(lines: list[str], number: int, parameters: dict[str, str]) -> int:
    """Reads a field such as `:param int n: how often`, and gives the number of the line after it."""
    match = FIELD.match(lines[number])
    assert match
    words = [match[3] or ""]
    number += 1
    while number < len(lines) and (lines[number].startswith(" ") and lines[number].strip()):
        words.append(lines[number].strip())
        number += 1
    if match[1] in FIELD_PARAMETERS and match[2]:
        name = match[2].split()[-1].lstrip("*\\")
        parameters[name] = " ".join(word for word in words if word)
    return number
