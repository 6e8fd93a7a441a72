"""What a tool can return besides plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Union


@dataclass
class Attachment:
    """Something that comes with the output: a text, an image or a file."""

    data: Union[str, bytes]
    """A text, or bytes."""
    mime_type: str = ""
    name: Optional[str] = None
    type: str = ""
    """`text`, `image` or `file`; found out where it is not given."""

    def __contract__(self) -> dict[str, Any]:
        from .plain import kind_of

        found: dict[str, Any] = {}
        if isinstance(self.data, str):
            found["type"] = self.type or "text"
            found["mimeType"] = self.mime_type or "text/plain"
            found["text"] = self.data
        else:
            guessed = kind_of(bytes(self.data))
            mime_type = self.mime_type or guessed
            found["type"] = self.type or ("image" if mime_type.startswith("image/") else "file")
            found["mimeType"] = mime_type
            found["data"] = self.data
        if self.name is not None:
            found["name"] = self.name
        return found


@dataclass
class Result:
    """The output for the agent, with what goes beside it."""

    output: str = ""
    title: Optional[str] = None
    metadata: dict[str, Any] = field(default_factory=dict)
    attachments: list[Union[Attachment, dict[str, Any]]] = field(default_factory=list)
    structured: Any = None
    is_error: bool = False

    def __contract__(self) -> dict[str, Any]:
        found: dict[str, Any] = {"output": str(self.output)}
        if self.title is not None:
            found["title"] = self.title
        if self.metadata:
            found["metadata"] = self.metadata
        if self.attachments:
            found["attachments"] = list(self.attachments)
        if self.structured is not None:
            found["structured"] = self.structured
        if self.is_error:
            found["isError"] = True
        return found
