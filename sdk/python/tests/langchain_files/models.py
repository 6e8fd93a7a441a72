"""Arguments described by a pydantic model."""

from typing import List, Literal

from langchain_core.tools import tool
from pydantic import BaseModel, Field


class Stop(BaseModel):
    place: str
    nights: int = 1


class Trip(BaseModel):
    """Where to go, and how."""

    stops: List[Stop] = Field(description="The places, in order")
    by: Literal["train", "ship"] = Field("train", description="How to travel")


@tool("plan-trip", args_schema=Trip)
def plan(stops: List[Stop], by: str) -> str:
    """Plan a trip."""
    return f"by {by}: " + ", ".join(f"{stop.place} ({stop.nights})" for stop in stops)
