# an import for type checkers only
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import socket

def go(s: "socket.socket") -> None:
    s.close()
