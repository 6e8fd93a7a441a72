"""Python values as JSON has them: dataclasses, models, enums, dates, paths, sets and the like."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)


class NoJson(TypeError):
    """A value that has no JSON form."""


def kind_of(data: bytes) -> str:
    """The MIME type that the first bytes speak of."""
    for magic, mime_type in MAGIC:
        if data.startswith(magic):
            return mime_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"


def in_base64(data: Any) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")


def type_name(value: object) -> str:
    """The type's name as its users know it."""
    kind = type(value)
    if kind.__module__ in ("builtins", "__main__") or kind.__module__.startswith("toolcrib_tools"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def plain(value: Any) -> Any:
    """The value as JSON has it; `NoJson` names the type that has no such form."""
    kind = type(value)
    if kind is str or kind is bool or kind is int or value is None:
        return value
    if kind is float:
        return value if value - value == 0 else None  # JSON has neither NaN nor infinity
    if kind is dict:
        return {key if type(key) is str else key_text(key): plain(part) for key, part in value.items()}
    if kind is list:
        return [plain(part) for part in value]
    return special(value)


def key_text(key: Any) -> str:
    """A dict's key as JSON has it."""
    key = plain(key)
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (int, float)):
        return str(key)
    raise NoJson("a dict's key must be text; this one is a " + type_name(key))


def special(value: Any) -> Any:
    """Values of all but JSON's own types."""
    kind = type(value)
    contract = getattr(kind, "__contract__", None)
    if contract is not None:
        return plain(contract(value))
    module = kind.__module__
    if getattr(kind, "__members__", None) is not None and hasattr(value, "_value_"):
        return plain(value._value_)  # an Enum
    if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
        # In MCP's own types a field that is None was never said.
        unsaid = module.split(".")[0] == "mcp"
        return plain(value.model_dump(mode="json", by_alias=True, exclude_none=unsaid))
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields

        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
        if names is not None:
            return {name: plain(part) for name, part in zip(names, value)}
        return [plain(part) for part in value]
    if isinstance(value, (set, frozenset)):
        parts = [plain(part) for part in value]
        try:
            return sorted(parts)
        except TypeError:
            return sorted(parts, key=repr)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return in_base64(value)
    if module == "datetime":
        return duration(value) if kind.__name__ == "timedelta" else text_of_date(value)
    if module == "decimal":
        return str(value)
    if module in ("uuid", "ipaddress", "zoneinfo") or module.startswith("pathlib"):
        return str(value)
    if kind.__name__ == "Pattern" and module == "re":
        return value.pattern
    return derived(value)


def derived(value: Any) -> Any:
    """Values of types derived from JSON's own, and of types that can turn into one of them."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return plain(int(value))
    if isinstance(value, float):
        return plain(float(value))
    from collections.abc import Mapping, Sequence

    if isinstance(value, Mapping):
        return plain(dict(value.items()))
    if isinstance(value, Sequence) or type(value).__name__ == "deque":
        return [plain(part) for part in value]
    if hasattr(value, "__fspath__"):
        return plain(value.__fspath__())
    for convert in ("tolist", "isoformat"):  # arrays and numbers of numpy; other libraries' dates
        method = getattr(value, convert, None)
        if callable(method) and not isinstance(value, type):
            return plain(method())
    raise NoJson(f"a value of type {type_name(value)} has no JSON form")


def text_of_date(value: Any) -> Any:
    isoformat = getattr(value, "isoformat", None)
    return str(value) if isoformat is None else isoformat()


def duration(value: Any) -> str:
    """A timedelta in ISO 8601, such as P1DT2H0.5S."""
    sign = "-" if value.days < 0 else ""
    value = abs(value)
    hours, seconds = divmod(value.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    text = f"{seconds}.{value.microseconds:06d}".rstrip("0") if value.microseconds else str(seconds)
    days = f"{value.days}D" if value.days else ""
    parts = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0) + f"{text}S" * (text != "0")
    return f"{sign}P{days}" + (f"T{parts}" if parts or not days else "") + ("0S" if not parts and not days else "")


def result_of(value: Any) -> Any:
    """What a tool returned, as the protocol has it."""
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        mime_type = kind_of(data)
        attachment = {
            "type": "image" if mime_type.startswith("image/") else "file",
            "mimeType": mime_type,
            "data": in_base64(data),
        }
        return {"output": f"{len(data)} bytes, {mime_type}", "attachments": [attachment]}
    if getattr(type(value), "__name__", "") == "Attachment" and hasattr(type(value), "__contract__"):
        return {"output": "", "attachments": [plain(value)]}
    return plain(value)
