"""Converts lengths. The result is a dataclass, so agents get data with a schema."""

from dataclasses import dataclass
from typing import Literal

from toolcrib import tool

METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "mi": 1609.344}
Unit = Literal["mm", "cm", "m", "km", "in", "ft", "mi"]


@dataclass
class Length:
    value: float
    unit: Unit


@tool(name="convert-length", read_only=True, idempotent=True)
def convert_length(value: float, unit: Unit, to: Unit = "m") -> Length:
    """Converts a length to another unit.

    Args:
        value: How long it is.
        unit: The unit of `value`.
        to: The unit that is wanted.
    """
    if value < 0:
        raise ValueError("a length is not below 0")
    return Length(round(value * METRES[unit] / METRES[to], 6), to)
