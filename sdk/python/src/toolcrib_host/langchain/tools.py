"""A stand-in for `langchain_core.tools`: makes objects with the same names, so that such files load as they are."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union


class ToolException(Exception):
    """What a tool raises to say that it failed."""


class SchemaAnnotationError(TypeError):
    """`args_schema` is not what it should be."""


class InjectedToolArg:
    """Marks a parameter that is not for the agent."""


class InjectedToolCallId(InjectedToolArg):
    """Marks the parameter that gets the call's id."""


class BaseTool:
    """A tool as a class: it has `name`, `description` and `_run` or `_arun`."""

    name: str = ""
    description: str = ""
    args_schema: Any = None
    return_direct: bool = False
    response_format: str = "content"
    handle_tool_error: Any = False
    handle_validation_error: Any = False
    tags: Any = None
    metadata: Any = None
    extras: Any = None
    parse_docstring: bool = False
    func: Optional[Callable[..., Any]] = None
    coroutine: Optional[Callable[..., Any]] = None

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def _run(self, *values: Any, **named: Any) -> Any:
        raise NotImplementedError("this tool is async: use ainvoke")

    async def _arun(self, *values: Any, **named: Any) -> Any:
        return self._run(*values, **named)

    @property
    def args(self) -> dict[str, Any]:
        """The schemas of the parameters, by name."""
        from ..adopted import schema_of

        properties = schema_of(self).get("properties", {})
        assert isinstance(properties, dict)
        return properties

    def get_name(self, suffix: Optional[str] = None, *, name: Optional[str] = None) -> str:
        return (name or self.name) + (suffix or "")

    def invoke(self, input: Any, config: Any = None, **named: Any) -> Any:
        """Runs the tool with a dict of arguments, or with one value."""
        return self._content(self._run(**self._arguments(input)))

    async def ainvoke(self, input: Any, config: Any = None, **named: Any) -> Any:
        return self._content(await self._arun(**self._arguments(input)))

    run = invoke
    arun = ainvoke

    def __call__(self, tool_input: Any, callbacks: Any = None) -> Any:
        return self.invoke(tool_input)

    def _arguments(self, given: Any) -> dict[str, Any]:
        if isinstance(given, dict):
            return dict(given["args"]) if given.get("type") == "tool_call" and "args" in given else given
        return {next(iter(self.args), "tool_input"): given}

    def _content(self, value: Any) -> Any:
        return value[0] if self.response_format == "content_and_artifact" else value


class StructuredTool(BaseTool):
    """A tool made of a function, or of an async one."""

    def _run(self, *values: Any, **named: Any) -> Any:
        if self.func is None:
            raise NotImplementedError("this tool is async: use ainvoke")
        return self.func(*values, **named)

    async def _arun(self, *values: Any, **named: Any) -> Any:
        if self.coroutine is None:
            return self._run(*values, **named)
        return await self.coroutine(*values, **named)

    @classmethod
    def from_function(
        cls,
        func: Optional[Callable[..., Any]] = None,
        coroutine: Optional[Callable[..., Any]] = None,
        name: Optional[str] = None,
        description: Optional[str] = None,
        return_direct: bool = False,
        args_schema: Any = None,
        infer_schema: bool = True,
        *,
        response_format: str = "content",
        parse_docstring: bool = False,
        error_on_invalid_docstring: bool = False,
        **fields: Any,
    ) -> StructuredTool:
        """A tool made of `func`, or of `coroutine`."""
        function = coroutine if func is None else func
        if function is None:
            raise ValueError("from_function takes `func` or `coroutine`")
        return cls(
            func=func,
            coroutine=coroutine,
            name=name or function.__name__,
            description=description or text_of(function, args_schema),
            return_direct=return_direct,
            args_schema=args_schema,
            response_format=response_format,
            parse_docstring=parse_docstring,
            **fields,
        )


class Tool(StructuredTool):
    """A tool that takes one text."""

    def __init__(self, name: str, func: Optional[Callable[..., Any]], description: str, **fields: Any) -> None:
        super().__init__(name=name, func=func, description=description, **fields)

    def _run(self, *values: Any, **named: Any) -> Any:
        return super()._run(*values, *named.values())

    async def _arun(self, *values: Any, **named: Any) -> Any:
        return await super()._arun(*values, *named.values())


class BaseToolkit:
    """Several tools together."""

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def get_tools(self) -> list[BaseTool]:
        raise NotImplementedError


def text_of(function: Callable[..., Any], args_schema: Any) -> str:
    """What is said about a function: its docstring, or that of its schema."""
    return function.__doc__ or (getattr(args_schema, "__doc__", None) or "")


def is_async(function: Any) -> bool:
    from toolcrib.signature import COROUTINE, flags_of

    return bool(flags_of(function) & COROUTINE)


def tool(
    name_or_callable: Optional[Union[str, Callable[..., Any]]] = None,
    runnable: Optional[Callable[..., Any]] = None,
    *more: Any,
    description: Optional[str] = None,
    return_direct: bool = False,
    args_schema: Any = None,
    infer_schema: bool = True,
    response_format: str = "content",
    parse_docstring: bool = False,
    error_on_invalid_docstring: bool = True,
    extras: Any = None,
) -> Any:
    """Makes a tool of a function: `@tool`, `@tool("name")`, `@tool(args_schema=…)`."""
    name = name_or_callable if isinstance(name_or_callable, str) else None

    def make(function: Any) -> StructuredTool:
        if not callable(function):
            raise ValueError(f"@tool decorates a function, not {function!r}")
        text = {"func": None, "coroutine": function} if is_async(function) else {"func": function}
        return StructuredTool.from_function(
            **text,
            name=name,
            description=description,
            return_direct=return_direct,
            args_schema=args_schema,
            response_format=response_format,
            parse_docstring=parse_docstring,
            extras=extras,
        )

    if runnable is not None:
        return make(runnable)
    return make(name_or_callable) if name is None and name_or_callable is not None else make
