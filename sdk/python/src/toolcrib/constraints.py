"""What `Annotated[…]` says beside a type: descriptions, and limits in the words of pydantic and annotated-types."""

from __future__ import annotations

from typing import Any

NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def described(schema: dict[str, Any], notes: tuple[Any, ...]) -> dict[str, Any]:
    """The schema with what the notes of an `Annotated` add."""
    for note in notes:
        if isinstance(note, str):
            schema = {**schema, "description": note}
            continue
        if isinstance(note, type):
            continue
        for name in ("description", "documentation"):
            if isinstance(getattr(note, name, None), str):
                schema = {**schema, "description": getattr(note, name)}
        examples = getattr(note, "examples", None)
        if isinstance(examples, list):
            schema = {**schema, "examples": examples}
        extra = getattr(note, "json_schema_extra", None)
        if isinstance(extra, dict):
            schema = {**schema, **extra}
        schema = limited(schema, limits(note))
        nested = getattr(note, "metadata", None)
        if isinstance(nested, (list, tuple)):
            schema = described(schema, tuple(nested))
    return schema


def limits(note: Any) -> dict[str, Any]:
    """The limits that a note has, by the names that pydantic gives them."""
    found = {}
    for name in (*NUMBERS, "min_length", "max_length", "pattern"):
        value = getattr(note, name, None)
        if name == "pattern":
            value = getattr(value, "pattern", value)
            if not isinstance(value, str):
                continue
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        found[name] = value
    if found.get("min_length") == 0:
        del found["min_length"]  # says nothing
    return found


def limited(schema: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The schema with those limits that its type can have."""
    if not found:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [limited(branch, found) for branch in schema["anyOf"]]}
    kind = schema.get("type")
    names: dict[str, str] = {}
    if kind in ("integer", "number"):
        names = NUMBERS
    elif isinstance(kind, str):
        names = LENGTHS.get(kind, {})
    if kind == "string":
        names = {**names, "pattern": "pattern"}
    return {**schema, **{names[name]: value for name, value in found.items() if name in names}}
