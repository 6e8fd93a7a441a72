"""What `initialize` says of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hosting import DIRECTORY, FILE, Hosted

HEAD = "from toolcrib import tool, Context\n"
GREET = HEAD + '@tool\ndef greet(name: str) -> str:\n    """Greets."""\n    return "hi " + name\n'


def names(result: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


def test_a_simple_file(host: Hosted) -> None:
    assert host.loaded(GREET) == {
        "protocolVersion": "1.1",
        "concurrency": 16,
        "tools": [
            {
                "name": "greet",
                "description": "Greets.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
                "line": 3,
            }
        ],
        "problems": [],
    }


def test_all_options(host: Hosted) -> None:
    text = (
        HEAD
        + """
@tool(name="full", description="Does all", title="All", read_only=True, idempotent=True, destructive=False,
      open_world=False, timeout_ms=5000, tags=["a"], aliases=("b",), metadata={"k": 1}, version="1.2.3",
      icons=[{"src": "data:,", "sizes": ["any"]}], meta={"a/b": {"c": 1}},
      output_schema={"type": "object"}, permissions={"can_read_files": True, "canNetwork": False, "required": ["read", "exec"],
      "allowed_environment_vars": ["HOME"]}, sandbox={"max_memory_mb": 64, "allowedPaths": ["/tmp"], "max_execution_ms": 10})
def f() -> dict:
    return {}
"""
    )
    (tool,) = host.loaded(text)["tools"]
    del tool["inputSchema"], tool["line"]
    assert tool == {
        "name": "full",
        "description": "Does all",
        "annotations": {
            "title": "All",
            "readOnlyHint": True,
            "idempotentHint": True,
            "destructiveHint": False,
            "openWorldHint": False,
        },
        "timeoutMs": 5000,
        "tags": ["a"],
        "aliases": ["b"],
        "metadata": {"k": 1},
        "icons": [{"src": "data:,", "sizes": ["any"]}],
        "_meta": {"a/b": {"c": 1}},
        "version": "1.2.3",
        "outputSchema": {"type": "object"},
        "permissions": {
            "canReadFiles": True,
            "canNetwork": False,
            "required": ["read", "exec"],
            "allowedEnvironmentVars": ["HOME"],
        },
        "sandbox": {"maxMemoryMB": 64, "allowedPaths": ["/tmp"], "maxExecutionMs": 10},
    }


def test_no_tool(host: Hosted) -> None:
    result = host.loaded("x = 1\n")
    assert (result["tools"], result["problems"]) == ([], [])


def test_empty_file(host: Hosted) -> None:
    assert host.loaded("")["tools"] == []


BAD_NEIGHBOURS = [
    ("@tool\ndef bad():\n    pass\n", "ValidationError", "has no description", 11),
    ('@tool(name="a b")\ndef bad():\n    """B."""\n', "ValidationError", "'a b' is no name for a tool", 11),
    ('@tool(nmae="bad")\ndef bad():\n    """B."""\n', "ValidationError", "did you mean 'name'?", 11),
    (
        '@tool\ndef bad(*values: int):\n    """B."""\n',
        "ValidationError",
        "*values can't be given by name",
        11,
    ),
    (
        '@tool\ndef bad(n: complex):\n    """B."""\n',
        "ValidationError",
        "the type complex has no JSON form",
        11,
    ),
    (
        '@tool\ndef bad(n: "Nope"):\n    """B."""\n',
        "ValidationError",
        "the type 'Nope' is not known here",
        11,
    ),
    ('@tool\ndef bad():\n    """B."""\n    yield 1\n', "ValidationError", "it yields", 11),
    ('@tool\nasync def bad():\n    """B."""\n    yield 1\n', "ValidationError", "it yields", 11),
    (
        '@tool(metadata={"a": object()})\ndef bad():\n    """B."""\n',
        "ValidationError",
        "has no JSON form",
        11,
    ),
    (
        '@tool\ndef first():\n    """B."""\n',
        "NameClash",
        "there is a tool named 'first' already in line 4",
        11,
    ),
    (
        '@tool(name="first")\ndef bad():\n    """B."""\n',
        "NameClash",
        "there is a tool named 'first' already",
        11,
    ),
    (
        'def broken(start):\n    raise OSError("no net")\n@tool(init=broken)\ndef bad():\n    """B."""\n',
        "ValidationError",
        "the init of 'bad' failed: OSError: no net",
        13,
    ),
]


@pytest.mark.parametrize(
    ("bad", "kind", "words", "line"), BAD_NEIGHBOURS, ids=[words for _, _, words, _ in BAD_NEIGHBOURS]
)
def test_a_bad_tool_hides_no_neighbour(host: Hosted, bad: str, kind: str, words: str, line: int) -> None:
    text = f'{HEAD}\n@tool\ndef first() -> str:\n    """First."""\n    return "1"\n\n\n\n{bad}\n@tool\ndef last():\n    """Last."""\n    return "2"\n'
    result = host.loaded(text)
    assert names(result) == ["first", "last"]
    (problem,) = result["problems"]
    assert problem["errorType"] == kind
    assert problem["severity"] == "error"
    assert words in problem["message"]
    assert problem["line"] == line
    assert problem["hint"]
    assert host.result("first") == "1"
    assert host.result("last") == "2"


def test_warnings_leave_the_tool(host: Hosted) -> None:
    result = host.loaded(HEAD + '@tool\ndef f(a, n: int = "x"):\n    """F."""\n    return [a, n]\n')
    assert names(result) == ["f"]
    assert [problem["severity"] for problem in result["problems"]] == ["warning", "warning"]
    assert result["problems"][0]["toolName"] == "f"
    assert host.result("f", {"a": 1}) == [1, "x"]


def test_which_functions_are_tools(host: Hosted) -> None:
    text = (
        HEAD
        + '''
import functools
from ._shared import elsewhere, double

def logged(function):
    @functools.wraps(function)
    def wrapper(*values, **named):
        return "logged " + function(*values, **named)
    return wrapper

@logged
@tool
def outside(a: str):
    """Decorated above."""
    return a

@tool
@logged
def inside(a: str):
    """Decorated below."""
    return a

def make(name):
    @tool(name=name)
    def made():
        """Made."""
        return name
    return made

one, two = make("one"), make("two")
make("lost")

class Group:
    @tool
    def method(self):
        """No tool."""

part = tool(name="part", description="A part")(functools.partial(double, b=3))
again = outside

if __name__ == "__main__":
    raise SystemExit("this does not run")
'''
    )
    shared = (
        HEAD
        + '''
@tool
def elsewhere():
    """Belongs to the other file."""

def double(a: int, b: int) -> int:
    return a * b
'''
    )
    result = host.loaded(text, {"_shared.py": shared})
    assert names(result) == ["outside", "inside", "one", "two", "part"]
    assert result["problems"] == []
    assert host.result("outside", {"a": "x"}) == "logged x"
    assert host.result("inside", {"a": "x"}) == "logged x"
    assert host.result("two") == "two"
    assert host.result("part", {"a": 2}) == 6


IMPORTS = [
    "from ._shared import VALUE",
    "from . import _shared; VALUE = _shared.VALUE",
    "from _shared import VALUE",
    "import _shared; VALUE = _shared.VALUE",
]


@pytest.mark.parametrize("line", IMPORTS)
def test_siblings(host: Hosted, line: str) -> None:
    text = f'{HEAD}{line}\n@tool\ndef f():\n    """F."""\n    return VALUE + __file__\n'
    host.loaded(text, {"_shared.py": "VALUE = __file__\n"})
    assert host.result("f") == str(Path(FILE).with_name("_shared.py")) + FILE


def test_one_module_under_two_names(host: Hosted) -> None:
    text = (
        HEAD
        + 'import _a\nfrom . import _a as b\nfrom .pack.part import P\nimport pack.part\n@tool\ndef f():\n    """F."""\n    return [_a is b, P is pack.part.P, _a.Q]\n'
    )
    others = {
        "_a.py": "from . import pack\nfrom .pack import Q\n",
        "pack/__init__.py": "Q = 5\n",
        "pack/part.py": "from . import Q\nclass P: pass\n",
    }
    host.loaded(text, others)
    assert host.result("f") == [True, True, 5]


def test_siblings_do_not_hide_the_standard_library(host: Hosted) -> None:
    host.loaded(HEAD + 'import json\n@tool\ndef f():\n    """F."""\n    return json.dumps(1)\n', {"json.py": "1/0\n"})
    assert host.result("f") == "1"


def test_not_in_texts_is_imported_the_usual_way(host: Hosted, tmp_path: Path) -> None:
    (tmp_path / "_there.py").write_text("VALUE = 7\n")
    text = HEAD + 'from ._there import VALUE\n@tool\ndef f():\n    """F."""\n    return VALUE\n'
    answer = host.load(text, file=str(tmp_path / "t.py"), directory=str(tmp_path))
    assert "result" in answer, answer
    assert host.result("f") == 7
    assert [path.name for path in tmp_path.iterdir()] == ["_there.py"]


def test_odd_file_names(host: Hosted) -> None:
    answer = host.load(GREET, file="/crib/my tool.v2-x.py")
    assert names(answer["result"]) == ["greet"]


def not_loaded(host: Hosted, text: str, others: Any = None) -> dict[str, Any]:
    error = host.load(text, others)["error"]
    assert error["code"] == -32002
    assert host.ask("health", {})["result"]["status"] == "healthy"
    return {"message": error["message"], **error["data"]}


def test_syntax_error(host: Hosted) -> None:
    error = not_loaded(host, "x = 1\ny = (\n")
    assert (error["errorType"], error["line"]) == ("SyntaxError", 2)
    assert error["column"] in (5, 6)  # 3.9 points behind it
    assert error["message"]


def test_syntax_error_in_a_sibling(host: Hosted) -> None:
    error = not_loaded(host, "x = 1\nimport _a\n", {"_a.py": "\n\nif\n"})
    assert error["errorType"] == "SyntaxError"
    assert error["line"] == 2
    assert "_a.py, line 3" in error["message"]


def test_null_byte(host: Hosted) -> None:
    assert not_loaded(host, "x = 1\0\n")["errorType"] == "SyntaxError"


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        (
            "x = 1\nimport no_such_thing\n",
            2,
            "there is no module 'no_such_thing'",
            '# dependencies = ["no_such_thing"]',
        ),
        ("import no_such_thing.part\n", 1, "there is no module 'no_such_thing'", "requirements.txt"),
        ("from . import _nope\n", 1, "cannot import name '_nope'", "see the line"),
        ("from ._nope import x\n", 1, "there is no file _nope.py beside this file", "write _nope.py"),
        ("from json import nope\n", 1, "cannot import name 'nope'", "see the line"),
        ("\n\n1 / 0\n", 3, "ZeroDivisionError: division by zero", "see the line"),
        ("def f():\n    1 / 0\n\nf()\n", 2, "ZeroDivisionError", "see the line"),
        ("import sys\nsys.exit(3)\n", 2, "calls sys.exit while it is loaded", "__main__"),
        ("raise KeyboardInterrupt\n", 1, "KeyboardInterrupt", "see the line"),
        ("def f(): f()\nf()\n", 1, "RecursionError", "without end"),
        ("import json.nope\n", 1, "json.nope", "fix the import"),
    ],
)
def test_import_errors(host: Hosted, text: str, line: int, words: str, hint: str) -> None:
    error = not_loaded(host, text)
    assert error["errorType"] == "ImportError"
    assert error["line"] == line
    assert words in error["message"]
    assert hint in error["hint"]


def test_package_of_another_name(bare: Hosted) -> None:
    assert "PyYAML" in not_loaded(bare, "import yaml\n")["hint"]


def test_another_try_after_a_failure(host: Hosted) -> None:
    not_loaded(host, "import _a\nx = (\n", {"_a.py": ""})
    assert names(host.loaded(GREET)) == ["greet"]
    assert host.result("greet", {"name": "Ada"}) == "hi Ada"
    assert host.load(GREET)["error"]["code"] == -32600


def test_without_script(host: Hosted) -> None:
    assert host.ask("initialize", {"protocolVersion": "1.0"})["error"]["code"] == -32602


def test_byte_order_mark(host: Hosted) -> None:
    assert names(host.loaded("\ufeff" + GREET)) == ["greet"]


def test_init(host: Hosted) -> None:
    text = (
        HEAD
        + '''
async def start(init):
    return {"description": "In " + init.directory, "tags": ["x"], "read_only": True, "pool": [1, 2],
            "input_schema": {"type": "object", "properties": {"a": {"enum": ["p", "q"]}}}}

def plain():
    return None

@tool(init=start, version="2")
def f(ctx: Context, a: str = "p"):
    """Replaced."""
    ctx.init["pool"].append(3)
    return ctx.init["pool"]

@tool(init=plain)
def g():
    """Stays."""
    return "g"
'''
    )
    f, g = host.loaded(text)["tools"]
    assert f["description"] == "In " + DIRECTORY
    assert f["tags"] == ["x"]
    assert f["version"] == "2"
    assert f["annotations"] == {"readOnlyHint": True}
    assert f["inputSchema"]["properties"] == {"a": {"enum": ["p", "q"]}}
    assert (f["dynamic"], g["dynamic"], g["description"]) == (True, True, "Stays.")
    assert host.result("f") == [1, 2, 3]
    assert host.result("g") == "g"


def test_output_schema(host: Hosted) -> None:
    text = (
        HEAD
        + '''
from dataclasses import dataclass
@dataclass
class Sum:
    total: int
@tool
def f(a: int) -> Sum:
    """F."""
    return Sum(a)
@tool(output_schema=Sum)
def g(a: int):
    """G."""
    return Sum(a)
'''
    )
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    assert [tool["outputSchema"] for tool in host.loaded(text)["tools"]] == [schema, schema]
    assert host.result("f", {"a": 3}) == {"total": 3}


def test_future_annotations(host: Hosted) -> None:
    text = (
        "from __future__ import annotations\n"
        + HEAD
        + '''
from dataclasses import dataclass
from typing import Optional
@tool
def f(n: Node, ctx: Optional[Context] = None, k: list[int] = [1]) -> int:
    """F."""
    return n.value + len(n.nodes) + len(k)
@dataclass
class Node:
    value: int
    nodes: list[Node]
'''
    )
    (tool,) = host.loaded(text)["tools"]
    assert list(tool["inputSchema"]["properties"]) == ["n", "k"]
    assert host.result("f", {"n": {"value": 5, "nodes": [{"value": 1, "nodes": []}]}}) == 7


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    with Hosted(env={"PYTHONDONTWRITEBYTECODE": ""}) as host:
        text = HEAD + 'from . import helper\n@tool\ndef f():\n    """F."""\n    return helper.x\n'
        assert "result" in host.load(text, file=str(tmp_path / "t.py"), directory=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["helper.py"]


def test_the_file_as_it_was_scanned(host: Hosted, tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("this is not what was scanned\n")
    text = HEAD + '@tool\ndef f():\n    """F."""\n    raise ValueError("here")\n'
    assert "result" in host.load(text, file=str(file), directory=str(tmp_path))
    assert 'raise ValueError("here")' in host.error("f")["data"]["traceback"]


def test_folder_of_the_host_is_not_importable(host: Hosted) -> None:
    error = not_loaded(host, "import adopted\n")
    assert "there is no module 'adopted'" in error["message"]


def test_python_version_is_new_enough() -> None:
    assert sys.version_info >= (3, 9)


def test_variables(host: Hosted) -> None:
    text = HEAD + '@tool(env={"TOKEN": "secret://tickets", "MODE": "fast"})\ndef f():\n    """F."""\n'
    assert host.loaded(text)["tools"][0]["env"] == {"TOKEN": "secret://tickets", "MODE": "fast"}


@pytest.mark.parametrize("value", ["['TOKEN']", "{'TOKEN': 1}", "'TOKEN'"])
def test_variables_that_are_none(host: Hosted, value: str) -> None:
    loaded = host.loaded(HEAD + f'@tool(env={value})\ndef f():\n    """F."""\n')
    assert "env is a dict" in loaded["problems"][0]["message"]


def test_pydantic_has_the_last_word(host: Hosted) -> None:
    pytest.importorskip("pydantic")
    text = """
    from typing import Optional
    from pydantic import BaseModel
    from toolcrib import tool

    class Row(BaseModel):
        n: int

    @tool
    def f(row: Row, other: Optional[Row] = None, n: int = 1) -> int:
        '''F.'''
        return row.n
    """
    assert host.loaded(text)["tools"][0]["checksArguments"] == ["row", "other"]
    assert host.result("f", {"row": {"n": "5", "more": 1}}) == 5
    assert host.error("f", {"row": {"n": "x"}})["code"] == -32602
