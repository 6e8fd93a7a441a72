"""From JSON to Python values: each function here makes, or is, the conversion to one kind of value."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Callable, Optional, Union

    Convert = Callable[[Any], Any]


class Mismatch(Exception):
    """A value that is not what the parameter's type wants."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[Union[str, int]] = []

    def under(self, part: Union[str, int]) -> Mismatch:
        """The same, seen from one level higher."""
        self.path.insert(0, part)
        return self

    def __str__(self) -> str:
        if not self.path:
            return self.reason
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"`{path.lstrip('.')}`: {self.reason}"


KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
}


def shown(value: object) -> str:
    """A value in an error: what kind it is, and the value itself where it is short."""
    if value is None:
        return "null"
    kind = KINDS.get(type(value), type(value).__name__)
    if isinstance(value, (str, int, float)):
        text = repr(value)
        return f"{kind} ({text if len(text) <= 40 else text[:40] + '…'})"
    return kind


def wrong(wanted: str, value: object) -> Mismatch:
    return Mismatch(f"expected {wanted}, got {shown(value)}")


def to_text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise wrong("a string", value)


def to_integer(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)  # JSON does not tell 1.0 from 1
    raise wrong("an integer", value)


def to_number(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise wrong("a number that is not that large", value) from None
    raise wrong("a number", value)


def to_boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise wrong("true or false", value)


def to_none(value: Any) -> Any:
    if value is None:
        return value
    raise wrong("null", value)


def to_list(value: Any) -> Any:
    if type(value) is list:
        return value
    raise wrong("an array", value)


def to_dict(value: Any) -> Any:
    if type(value) is dict:
        return value
    raise wrong("an object", value)


def array(make: Callable[[list[Any]], Any], item: Optional[Convert]) -> Convert:
    """An array of equal items, as a list, a set or another collection."""

    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise wrong("an array", value)
        if item is not None:
            converted = []
            for part in value:
                try:
                    converted.append(item(part))
                except Mismatch as mismatch:
                    raise mismatch.under(len(converted)) from None
            value = converted
        if make is list:
            return value
        try:
            return make(value)
        except TypeError as error:  # a set of things that can't be in a set
            raise Mismatch(str(error)) from None

    return convert


def fixed(items: Sequence[Optional[Convert]], make: Callable[[list[Any]], Any]) -> Convert:
    """An array with as many items as there are conversions."""

    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise wrong("an array", value)
        if len(value) != len(items):
            raise Mismatch(f"expected {len(items)} items, got {len(value)}")
        converted = []
        for item, part in zip(items, value):
            try:
                converted.append(part if item is None else item(part))
            except Mismatch as mismatch:
                raise mismatch.under(len(converted)) from None
        return make(converted)

    return convert


def mapping(
    make: Optional[Callable[[dict[Any, Any]], Any]], key: Optional[Convert], item: Optional[Convert]
) -> Convert:
    """An object whose keys are not known beforehand."""

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise wrong("an object", value)
        converted = {}
        for name, part in value.items():
            try:
                place = name if key is None else key(name)
                converted[place] = part if item is None else item(part)
            except Mismatch as mismatch:
                raise mismatch.under(name) from None
        return converted if make is None else make(converted)

    return convert


def record(
    fields: Mapping[str, tuple[str, Optional[Convert], bool]],
    make: Optional[Callable[..., Any]],
) -> Convert:
    """An object with known fields: for each, its name in Python, its conversion, and whether it must be there."""

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise wrong("an object", value)
        converted = {}
        for name, (place, item, required) in fields.items():
            if name in value:
                try:
                    converted[place] = value[name] if item is None else item(value[name])
                except Mismatch as mismatch:
                    raise mismatch.under(name) from None
            elif required:
                raise Mismatch("it is missing").under(name)
        if make is None:
            return converted
        try:
            return make(**converted)
        except (TypeError, ValueError) as error:  # a check of the class itself
            raise Mismatch(str(error)) from None

    return convert


def one_of(pairs: Sequence[tuple[Any, Any]]) -> Convert:
    """One of a few values; each stands with its JSON form before it."""

    def convert(value: Any) -> Any:
        for form, member in pairs:
            if form == value and (isinstance(form, bool) is isinstance(value, bool)):
                return member
        raise wrong("one of " + ", ".join(repr(form) for form, _ in pairs), value)

    return convert


def any_of(members: Sequence[Optional[Convert]]) -> Convert:
    """The first member that takes the value."""
    # 3 stays an integer where both are allowed.
    ordered = sorted(members, key=lambda member: member is to_number)

    def convert(value: Any) -> Any:
        reasons = []
        for member in ordered:
            if member is None:
                return value
            try:
                return member(value)
            except Mismatch as mismatch:
                reasons.append(mismatch)
        deep = [reason for reason in reasons if reason.path]
        if deep:
            raise deep[0]  # it looked like this member, and says more than a list of types
        raise Mismatch("; or ".join(dict.fromkeys(str(reason) for reason in reasons)))

    return mark_pydantic(convert) if any(is_pydantic(member) for member in members) else convert


def mark_pydantic(convert: Convert) -> Convert:
    """Notes that pydantic has the last word about what this takes."""
    convert.__dict__["by_pydantic"] = True
    return convert


def is_pydantic(convert: Optional[Convert]) -> bool:
    return getattr(convert, "by_pydantic", False) is True


def by(make: Callable[[Any], Any], wanted: str, kinds: tuple[type, ...] = (str,)) -> Convert:
    """A value that a function makes from a string, or from one of `kinds`."""

    def convert(value: Any) -> Any:
        if type(value) not in kinds:
            raise wrong(wanted, value)
        try:
            return make(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise Mismatch(f"expected {wanted}, got {shown(value)}: {error}") from None

    return convert


def key_by(convert: Convert) -> Convert:
    """A key of an object: JSON has only strings there, so numbers are read from them."""
    reads: dict[Convert, Callable[[str], Any]] = {to_integer: int, to_number: float}
    if convert in reads:
        return by(reads[convert], "a number as key")
    if convert is to_boolean:
        return one_of((("true", True), ("false", False)))

    def read(key: Any) -> Any:
        try:
            return convert(key)
        except Mismatch:
            try:
                return convert(int(key))  # an enum of numbers
            except ValueError:
                pass
            raise

    return read


def from_base64(value: str) -> bytes:
    from base64 import b64decode

    return b64decode(value, validate=True)


def iso(kind: Any) -> Callable[[str], Any]:
    """Reads dates and times; Python before 3.11 does not know the Z of UTC."""

    def read(value: str) -> Any:
        return kind.fromisoformat(value[:-1] + "+00:00" if value[-1:] in ("Z", "z") else value)

    return read


def read_pattern(value: str) -> Any:
    import re

    try:
        return re.compile(value)
    except re.error as error:
        raise ValueError(str(error)) from None


def read_duration(value: str) -> Any:
    import re
    from datetime import timedelta

    number = r"(\d+(?:[.,]\d+)?)"
    pattern = f"([+-])?P(?:{number}W)?(?:{number}D)?(?:T(?:{number}H)?(?:{number}M)?(?:{number}S)?)?"
    match = re.fullmatch(pattern, value)
    if match is None or not any(match.groups()[1:]):
        raise ValueError("write it as in ISO 8601, such as PT1H30M")
    names = ("weeks", "days", "hours", "minutes", "seconds")
    parts = {name: float(part.replace(",", ".")) for name, part in zip(names, match.groups()[1:]) if part}
    return -timedelta(**parts) if match[1] == "-" else timedelta(**parts)
