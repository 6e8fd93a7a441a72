# data
from dataclasses import dataclass, field

@dataclass
class Command:
    exec: str
    system: bool = False
    os: list = field(default_factory=list)
