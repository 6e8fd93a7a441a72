"""Tools that LangChain made, or its stand-in: objects at the top of a file that know how to run themselves."""

from __future__ import annotations

import sys
import typing
from typing import TYPE_CHECKING, Any, Callable, Optional

from toolcrib import signature
from toolcrib.convert import Mismatch, to_dict
from toolcrib.docstring import clean, parse
from toolcrib.references import without_titles
from toolcrib.schema import Shapes, mismatch_of

from .collect import Collection, Entry

if TYPE_CHECKING:
    from types import ModuleType

STAND_IN = "toolcrib_host.langchain"
# Parameters that LangChain fills in itself.
OWN_NAMES = ("run_manager", "callbacks")


def adopt(collection: Collection, module: ModuleType) -> None:
    """Adds the LangChain tools that a module has at its top."""
    kind = getattr(sys.modules["langchain_core.tools"], "BaseTool", None)
    if kind is None:
        return
    others = [
        other
        for other in list(sys.modules.values())
        if other is not module and getattr(other, "__file__", None) in collection.sources.texts
    ]
    seen: list[Any] = []
    for value in list(vars(module).values()):
        if not isinstance(value, kind) or any(value is known for known in seen):
            continue
        seen.append(value)
        if any(value is there for other in others for there in vars(other).values()):
            continue  # it belongs to the file that made it
        add(collection, value)


def add(collection: Collection, tool: Any) -> None:
    name = str(getattr(tool, "name", "") or "")
    function = function_of(tool)
    line = collection.line_of(function, 0)
    try:
        if type(tool).__module__.startswith(STAND_IN) or is_stand_in(tool):
            entry = stand_in_entry(tool, function)
        else:
            entry = real_entry(tool)
    except Exception as error:
        hint = "see the tool's args_schema and the types of its parameters"
        return collection.problem(name, f"the tool {name!r} can't be described: {error}", hint, line)
    entry.fields.update({"name": name, "description": description_of(tool, function)})
    texts = parse(getattr(function, "__doc__", None) or "")[1]
    for parameter, schema in entry.fields["inputSchema"]["properties"].items():
        if parameter in texts:
            schema.setdefault("description", texts[parameter])
    if tool.return_direct:
        entry.fields["metadata"] = {"returnDirect": True}
    if isinstance(getattr(tool, "tags", None), list):
        entry.fields["tags"] = tool.tags
    entry.finish = finish_of(tool)
    return collection.add(entry, line)


def is_stand_in(tool: Any) -> bool:
    return any(kind.__module__.startswith(STAND_IN) for kind in type(tool).__mro__)


def function_of(tool: Any) -> Any:
    """The function behind a tool; its method where it is a class."""
    function = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    if function is not None:
        return function
    kind = type(tool)
    own = any("_arun" in vars(part) for part in kind.__mro__ if not is_frame(part))
    return tool._arun if own else tool._run


def is_frame(kind: type) -> bool:
    """Whether a class is LangChain's or the stand-in's own."""
    return kind.__module__.startswith(("langchain_core.", STAND_IN, "pydantic")) or kind is object


def description_of(tool: Any, function: Any) -> str:
    """The first paragraph, where the description is the whole docstring."""
    text = str(getattr(tool, "description", "") or "")
    document = getattr(function, "__doc__", None) or ""
    if text and "\n".join(clean(text)).strip() == "\n".join(clean(document)).strip():
        return parse(text)[0]
    return text.strip()


def schema_of(tool: Any) -> dict[str, Any]:
    """The schema of a stand-in's arguments."""
    schema: dict[str, Any] = stand_in_entry(tool, function_of(tool)).fields["inputSchema"]
    return schema


def finish_of(tool: Any) -> Optional[Callable[[Any], Any]]:
    """Content for the agent; the artifact beside it goes into the metadata."""

    def finish(value: Any) -> Any:
        if hasattr(value, "content") and hasattr(value, "tool_call_id"):  # a ToolMessage
            value, artifact = text_of(value.content), getattr(value, "artifact", None)
            return value if artifact is None else {"output": value, "metadata": {"artifact": artifact}}
        if tool.response_format == "content_and_artifact" and is_stand_in(tool):
            if not isinstance(value, tuple) or len(value) != 2:
                raise TypeError("with response_format='content_and_artifact' a tool returns (content, artifact)")
            return {"output": text_of(value[0]), "metadata": {"artifact": value[1]}}
        return value

    return finish


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    from json import dumps

    from toolcrib.plain import plain

    return dumps(plain(content), ensure_ascii=False)


def model_schema(model: Any) -> dict[str, Any]:
    """The schema of `args_schema`, which is a model or a JSON Schema."""
    if isinstance(model, dict):
        schema = without_titles(model)
    else:
        shapes = Shapes({})
        schema = signature.top(shapes.definitions.settle(shapes.shape(model).schema)) or {}
    schema = {name: value for name, value in schema.items() if name != "description"}
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return schema


def validate(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the model has them; those that it does not mention are left out."""
    if isinstance(model, dict):
        for name in model.get("required", ()):
            if name not in given:
                raise Mismatch("it is missing").under(name)
        return given
    try:
        found = model.model_validate(given)
    except ValueError as error:
        raise mismatch_of(error) from None
    return {name: getattr(found, name) for name in type(found).model_fields}


def injected(hint: Any) -> str:
    """`id`, `config` or `hidden` for a parameter that LangChain fills in; empty for all others."""
    if isinstance(hint, str):
        return (
            "config"
            if "RunnableConfig" in hint
            else "id"
            if "InjectedToolCallId" in hint
            else ("hidden" if "Injected" in hint else "")
        )
    if getattr(hint, "__name__", "") == "RunnableConfig":
        return "config"
    if any(getattr(part, "__name__", "") == "RunnableConfig" for part in typing.get_args(hint)):
        return "config"
    for note in getattr(hint, "__metadata__", ()):
        kind = note if isinstance(note, type) else type(note)
        names = [part.__name__ for part in kind.__mro__]
        if "InjectedToolCallId" in names:
            return "id"
        if "InjectedToolArg" in names:
            return "hidden"
    return ""


class Shown:
    """A function as the agent sees it: without the parameters that LangChain fills in."""

    def __init__(self, function: Any) -> None:
        import inspect

        self.function = function
        self.fills: dict[str, str] = {}
        whole = inspect.signature(function)
        kept = []
        for name, part in whole.parameters.items():
            how = "hidden" if name in OWN_NAMES else injected(part.annotation)
            if how:
                if how != "hidden" or part.default is inspect.Parameter.empty:
                    self.fills[name] = how
            elif part.kind is not inspect.Parameter.VAR_POSITIONAL or getattr(function, "__self__", None) is None:
                kept.append(part)
        self.__signature__ = whole.replace(parameters=kept)
        self.__wrapped__ = function
        self.__doc__ = function.__doc__

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self.function(*values, **named)

    def filled(self, context: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"id": getattr(context, "call_id", ""), "config": {}, "hidden": None}
        return {name: values[how] for name, how in self.fills.items()}


def stand_in_entry(tool: Any, function: Any) -> Entry:
    """A tool of the stand-in: its function is called by us."""
    shown = Shown(function)
    single = type(tool).__name__ == "Tool"
    found = signature.read(shown)
    if tool.args_schema is not None:
        schema = model_schema(tool.args_schema)
    elif single:
        schema = {
            "type": "object",
            "properties": {"tool_input": {"type": "string"}},
            "required": ["tool_input"],
        }
    else:
        schema = found.schema
        for severity, message in found.problems:
            if severity == "error":
                raise TypeError(message)

    def bind(given: dict[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        if single and tool.args_schema is None:
            return list(to_dict(given).values())[:1], {}
        if tool.args_schema is not None:
            return [], {**validate(tool.args_schema, given), **shown.filled(context)}
        values, named = found.bind(given, context)
        return values, {**named, **shown.filled(context)}

    fields = {"inputSchema": schema, **checks_of(tool.args_schema)}
    return Entry(fields, function, bind, found.asynchronous, True)


def checks_of(model: Any) -> dict[str, Any]:
    """Says that pydantic has the last word about the arguments, where it has."""
    return {"checksArguments": True} if hasattr(model, "model_validate") else {}


def real_entry(tool: Any) -> Entry:
    """A tool of the package itself: it is invoked as LangChain does."""
    shown = getattr(tool, "tool_call_schema", None) or tool.args_schema
    schema = model_schema(shown)
    kind = type(tool)
    asynchronous = getattr(tool, "coroutine", None) is not None or any(
        "_arun" in vars(part) for part in kind.__mro__ if not is_frame(part)
    )
    whole = tool.args_schema
    needs_id = (
        whole is not None
        and not isinstance(whole, dict)
        and any(
            injected(getattr(field, "annotation", None)) == "id"
            or any("InjectedToolCallId" in str(note) for note in getattr(field, "metadata", ()))
            for field in getattr(whole, "model_fields", {}).values()
        )
    )
    as_call = needs_id or tool.response_format == "content_and_artifact"

    def bind(given: dict[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        validate(shown, given)
        if not as_call:
            return [given], {}
        identity = getattr(context, "call_id", "") or "call"
        return [{"type": "tool_call", "id": identity, "name": tool.name, "args": given}], {}

    function = tool.ainvoke if asynchronous else tool.invoke
    return Entry({"inputSchema": schema, **checks_of(shown)}, function, bind, asynchronous, as_call)
