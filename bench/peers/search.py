"""FastMCP's own index of tools, measured on the same sets in the same way: `search.py DIR UNANSWERABLE`."""

import asyncio
import json
import logging
import math
import sys
import time
from importlib.metadata import version
from pathlib import Path

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

# It warns of names with spaces.
logging.disable(logging.WARNING)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def figures(found: list[str], relevant: list[str]) -> list[float]:
    def among(first: int) -> float:
        return sum(name in relevant for name in found[:first]) / len(relevant)

    gained = sum(1 / math.log2(place + 2) for place, name in enumerate(found) if name in relevant)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(relevant), 10)))
    return [among(1), among(5), among(10), gained / ideal]


def row(numbers: list[float]) -> str:
    one, five, ten, ndcg = (100 * number for number in numbers)
    return f"{one:5.1f} {five:5.1f} {ten:5.1f} {ndcg:8.1f}"


async def measure(folder: Path, unanswerable: list[str]) -> list[float]:
    tools = [
        Tool(name=tool["name"], description=tool["description"] or "", parameters=tool["input_schema"])
        for tool in lines(folder / "tools.jsonl")
    ]
    queries = lines(folder / "queries.jsonl")
    index = BM25SearchTransform(max_results=10)
    sums, taken = [0.0] * 4, []
    await index._search(tools, "warm up")
    for query in queries:
        start = time.perf_counter()
        found = [tool.name for tool in await index._search(tools, query["query"])]
        taken.append(time.perf_counter() - start)
        sums = [a + b / len(queries) for a, b in zip(sums, figures(found, query["relevant"]))]
    answered = [bool(await index._search(tools, query)) for query in unanswerable]
    taken.sort()
    p50, p99 = (taken[len(taken) * percent // 100] * 1000 for percent in (50, 99))
    print(
        f"{folder.name:<16} {len(tools):>6} {len(queries):>8} {row(sums)}"
        f"   unanswerable answered: {100 * sum(answered) / len(answered):.1f} %   p50 {p50:.1f} ms p99 {p99:.1f} ms"
    )
    return sums


async def main() -> None:
    folder, unanswerable = Path(sys.argv[1]), Path(sys.argv[2]).read_text().splitlines()
    unanswerable = [line for line in unanswerable if line and not line.startswith("#")]
    sets = [path for path in sorted(folder.iterdir()) if (path / "queries.jsonl").exists()]
    print(f"FastMCP {version('fastmcp')}, its own BM25 index")
    all_figures = [await measure(path, unanswerable) for path in sets]
    print(f"{'mean':<32} {row([sum(column) / len(sets) for column in zip(*all_figures)])}")


asyncio.run(main())
