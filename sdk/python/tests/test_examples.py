"""The example, the template and the SDK's own page work as they are written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hosting import Hosted

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/python-file"
TOOLS = EXAMPLE / ".toolcrib/tools"


def load(host: Hosted, file: Path) -> dict[str, Any]:
    texts = {str(path): path.read_text(encoding="utf-8") for path in file.parent.glob("*.py")}
    script = {"file": str(file), "directory": str(EXAMPLE), "texts": texts}
    result = host.ask("initialize", {"script": script})["result"]
    assert result["problems"] == []
    return dict(result)


@pytest.mark.parametrize("name", ["lengths.py", "lines.py"])
def test_example(host: Hosted, name: str) -> None:
    tools = {tool["name"] for tool in load(host, TOOLS / name)["tools"]}
    calls = [call for call in json.loads((EXAMPLE / "calls.json").read_text()) if call["tool"] in tools]
    assert {call["tool"] for call in calls} == tools
    for call in calls:
        params = {"tool": call["tool"], "input": call["arguments"], "context": {"directory": str(EXAMPLE)}}
        answer = host.ask("execute", params)
        assert ("error" in answer) is call.get("isError", False)
        shown = answer["error"]["message"] if "error" in answer else json.dumps(answer["result"])
        assert call["outputContains"] in shown


def test_example_tells_how_far_it_is(host: Hosted) -> None:
    load(host, TOOLS / "lines.py")
    host.ask("execute", {"tool": "count-lines", "input": {"pattern": "*.txt"}, "context": {"directory": str(EXAMPLE)}})
    assert [notice["params"]["message"] for notice in host.notices] == ["later.txt", "today.txt"]


def test_template(host: Hosted) -> None:
    text = (ROOT / "templates/python/tool.py").read_text()
    (tool,) = host.loaded(text.replace("TOOL_NAME", "say-it"))["tools"]
    assert (tool["name"], tool["description"]) == ("say-it", "Says a text, as often as asked.")
    assert set(tool["inputSchema"]["properties"]["times"]) == {"type", "default", "description"}
    assert host.result("say-it", {"text": "ho", "times": 2}) == "ho\nho"


def test_the_page(host: Hosted) -> None:
    page = (ROOT / "sdk/python/README.md").read_text()
    example, test = re.findall(r"```python\n(.*?)```", page, re.S)
    host.loaded(example)
    assert host.result("count", {"text": "one two"}) == {"output": "2 words", "metadata": {"count": 2}}
    assert host.error("count", {"text": ""})["message"] == "the text is empty"
    scope: dict[str, Any] = {}
    exec(example + test + "\ntest_count()\n", scope)
