"""Types that the tests describe and convert to."""

from __future__ import annotations

import enum
import sys
import typing
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, Dict, Generic, List, NamedTuple, NewType, Optional, TypeVar, Union

try:
    from typing_extensions import TypedDict  # pydantic wants this one
except ImportError:
    from typing import TypedDict  # type: ignore[assignment]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Odd(enum.Enum):
    THING = object()
    OTHER = object()


@dataclass
class Point:
    """A point.

    Attributes:
        x: To the right.
    """

    x: float
    y: float = 0.0


@dataclass
class Line:
    start: Point
    end: Point
    tags: List[str] = field(default_factory=list)


@dataclass
class Tree:
    name: str
    children: List[Tree] = field(default_factory=list)


@dataclass
class Left:
    right: Optional[Right] = None


@dataclass
class Right:
    left: Optional[Left] = None


@dataclass
class Even:
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("n is odd")


T = TypeVar("T")
Number = TypeVar("Number", int, str)
Bound = TypeVar("Bound", bound=int)


@dataclass
class Box(Generic[T]):
    inside: T


class Movie(TypedDict):
    title: str
    year: int


class Standard(typing.TypedDict):
    a: int


class Loose(TypedDict, total=False):
    a: int
    b: str


class Partly(Loose):
    c: bool


class Pair(NamedTuple):
    first: int
    second: str = "x"


Bare = namedtuple("Bare", "a b")

UserId = NewType("UserId", int)
Json = Union[Dict[str, Any], List[Any], str, int, float, bool, None]


class Text(str):
    """A text of its own."""


MODERN = sys.version_info >= (3, 11)
if MODERN:
    from typing import NotRequired, Required

    class Ticket(TypedDict, total=False):
        number: Required[int]
        note: str

    class Order(TypedDict):
        item: str
        count: NotRequired[int]
