"""`$defs` of a schema: named types are described once, and put in place where they are used once."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

PREFIX = "#/$defs/"
# Keywords whose values are schemas by name, lists of schemas, and single schemas.
BY_NAME = ("properties", "$defs", "patternProperties", "dependentSchemas")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else")


def each(schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """The schema with each schema directly in it changed."""
    found = {}
    for key, value in schema.items():
        if key in BY_NAME and isinstance(value, dict):
            value = {name: change(part) if isinstance(part, dict) else part for name, part in value.items()}
        elif key in LISTS and isinstance(value, list):
            value = [change(part) if isinstance(part, dict) else part for part in value]
        elif key in SINGLE and isinstance(value, dict):
            value = change(value)
        found[key] = value
    return found


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic makes from names."""
    found = each(schema, without_titles)
    if isinstance(found.get("title"), str):
        del found["title"]
    return found


class Definition:
    """A named type."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reference = PREFIX + name
        self.schema: dict[str, Any] = {}
        self.convert: Optional[Callable[[Any], Any]] = None


class Definitions:
    """The named types of one tool."""

    def __init__(self) -> None:
        self.by_key: list[tuple[Any, Definition]] = []
        self.schemas: dict[str, Definition] = {}

    def find(self, key: Any) -> Optional[Definition]:
        return next((found for known, found in self.by_key if known is key or known == key), None)

    def open(self, key: Any, name: str) -> Definition:
        """A new definition; its name gets a number where it is taken."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "Type"
        free, number = name, 2
        while free in self.schemas:
            free, number = f"{name}{number}", number + 1
        definition = Definition(free)
        self.schemas[free] = definition
        self.by_key.append((key, definition))
        return definition

    def adopt(self, schema: dict[str, Any], own: Optional[str]) -> dict[str, Any]:
        """Takes the `$defs` of a foreign schema over; gives the schema, with its references set right.

        `own` is the name under which the schema refers to itself, where it was opened before.
        """
        schema = without_titles(schema)
        foreign = schema.pop("$defs", {})
        names: dict[str, str] = {}
        for name, part in foreign.items():
            known = self.schemas.get(name)
            if name == own and known is not None:
                names[name] = known.name
            elif known is None or known.schema != part:
                names[name] = self.open(object(), name).name
            else:
                names[name] = name

        def renamed(part: dict[str, Any]) -> dict[str, Any]:
            found = each(part, renamed)
            reference = found.get("$ref")
            if isinstance(reference, str) and reference.startswith(PREFIX):
                found["$ref"] = PREFIX + names.get(reference[len(PREFIX) :], reference[len(PREFIX) :])
            return found

        for name, part in foreign.items():
            if not self.schemas[names[name]].schema:
                self.schemas[names[name]].schema = renamed(part)
        whole = renamed(schema)
        if own is not None and own in foreign and "$ref" in whole:
            return self.schemas[names[own]].schema
        return whole

    def settle(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The whole schema: types that are used once stand in place, the others in `$defs`."""
        if not self.schemas:
            return schema
        uses: dict[str, int] = {}
        round_about: set[str] = set()

        def count(part: dict[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
            name = referred(part)
            if name is not None and name in self.schemas:
                uses[name] = uses.get(name, 0) + 1
                if name in inside:
                    round_about.add(name)
                elif uses[name] == 1:
                    count(self.schemas[name].schema, (*inside, name))
            each(part, lambda inner: count(inner, inside))
            return part

        def place(part: dict[str, Any]) -> dict[str, Any]:
            name = referred(part)
            if name in uses and uses[name] == 1 and name not in round_about:
                beside = {key: value for key, value in part.items() if key != "$ref"}
                return {**place(self.schemas[name].schema), **beside}
            return each(part, place)

        count(schema, ())
        found = place(schema)
        kept = [name for name in self.schemas if uses.get(name, 0) > 1 or name in round_about]
        if kept:
            found["$defs"] = {name: place(self.schemas[name].schema) for name in kept}
        return found


def referred(schema: dict[str, Any]) -> Optional[str]:
    """The definition that a schema refers to."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(PREFIX):
        return reference[len(PREFIX) :]
    return None
