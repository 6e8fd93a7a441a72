"""Loads a tool file from the texts that came with `initialize`, under the paths that they were read from."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

from .failure import line_in, type_of, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Any, Optional

PACKAGE = "toolcrib_tools"

# Packages whose name is not that of their module.
DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "GitPython",
    "jwt": "PyJWT",
    "PIL": "pillow",
    "pptx": "python-pptx",
    "serial": "pyserial",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}


class OwnBytecode:
    """While the host imports parts of itself, they are kept compiled. Beside the user's files nothing ever is."""

    as_started = sys.dont_write_bytecode

    def __enter__(self) -> None:
        sys.dont_write_bytecode = self.as_started

    def __exit__(self, *_: object) -> None:
        sys.dont_write_bytecode = True


class NotLoaded(Exception):
    """The file can't be loaded at all."""

    def __init__(
        self,
        kind: str,
        message: str,
        hint: str,
        line: Optional[int] = None,
        column: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.data: dict[str, Any] = {"errorType": kind, "hint": hint}
        if line:
            self.data["line"] = line
        if column:
            self.data["column"] = column


class TextLoader:
    """Runs the text of one module."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text[1:] if text.startswith("\ufeff") else text

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self.path
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def get_source(self, name: str) -> str:
        return self.text

    def get_filename(self, name: str) -> str:
        return self.path

    def is_package(self, name: str) -> bool:
        return os.path.basename(self.path) == "__init__.py"


class SameModule:
    """`import _shared` gives the module that `from . import _shared` gives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: Optional[ModuleSpec] = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        __import__(self.name)
        module = sys.modules[self.name]
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class Finder:
    """Finds the texts: as modules of a package in the file's folder, and by their plain names beside it."""

    def __init__(self, file: str, texts: dict[str, str], alone: bool = False, own: Optional[str] = None) -> None:
        self.file = file
        self.texts = texts
        #: Whether the file is trusted by itself: of what lies around it nothing is imported, but for what is its own.
        self.alone = alone
        self.own = own
        self.folder = os.path.dirname(file)
        stem = os.path.splitext(os.path.basename(file))[0]
        #: The file's own module. A dot in its name would make it look like a package.
        self.name = f"{PACKAGE}.{stem.replace('.', '_')}"

    def path_of(self, parts: Sequence[str]) -> Optional[str]:
        below = os.path.join(self.folder, *parts)
        for path in (below + ".py", os.path.join(below, "__init__.py")):
            if path in self.texts:
                return path
        return None

    def find_spec(self, name: str, path: object = None, target: object = None) -> Optional[ModuleSpec]:
        parts = name.split(".")
        if parts[0] != PACKAGE:
            return self.beside(name, parts)
        if len(parts) == 1:
            spec = ModuleSpec(name, TextLoader(os.path.join(self.folder, "__init__.py"), ""), is_package=True)  # type: ignore[arg-type]
            spec.submodule_search_locations = [self.folder]
            return spec
        found = self.file if name == self.name else self.path_of(parts[1:])
        if found is None:
            return self.on_disk(name, path) if self.alone else None
        loader = TextLoader(found, self.texts[found])
        spec = ModuleSpec(name, loader, origin=found, is_package=loader.is_package(name))  # type: ignore[arg-type]
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = [os.path.dirname(found)]
        return spec

    def on_disk(self, name: str, path: object) -> ModuleSpec:
        """A module of a file that is trusted by itself, which no text is: only where it lies in the file's own
        folder."""
        spec = PathFinder.find_spec(name, path) if self.own and path else None  # type: ignore[arg-type]
        places = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
        inside = [self.is_own(place) for place in places if place]
        if spec is None or not inside or not all(inside):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec

    def is_own(self, place: str) -> bool:
        own = os.path.realpath(self.own or self.file)
        return os.path.realpath(place).startswith(own + os.sep)

    def beside(self, name: str, parts: list[str]) -> Optional[ModuleSpec]:
        """A module by its plain name; the standard library goes before it, installed packages do not."""
        if self.path_of(parts) is None or in_standard_library(parts[0]):
            return None
        return ModuleSpec(name, SameModule(f"{PACKAGE}.{name}"))  # type: ignore[arg-type]


class StandIn:
    """Gives our stand-in for LangChain's tools, where the package is not installed."""

    NAMES = {
        "langchain_core": "toolcrib_host.langchain",
        "langchain_core.tools": "toolcrib_host.langchain.tools",
        "langchain_core.callbacks": "toolcrib_host.langchain.callbacks",
        "langchain_core.runnables": "toolcrib_host.langchain.runnables",
        "langchain": "toolcrib_host.langchain",
        "langchain.tools": "langchain_core.tools",
    }

    def __init__(self, below: bool) -> None:
        #: Whether it finds what is in the stand-in, or the stand-in itself. That comes after all others had their turn.
        self.below = below

    def find_spec(self, name: str, path: object = None, target: object = None) -> Optional[ModuleSpec]:
        if name not in self.NAMES or self.below is ("." not in name):
            return None
        if self.below:
            parent = sys.modules.get(name.partition(".")[0])
            if parent is None or parent is not sys.modules.get("toolcrib_host.langchain"):
                return None
        return ModuleSpec(name, SameModule(self.NAMES[name]))  # type: ignore[arg-type]


def in_standard_library(name: str) -> bool:
    if name in sys.builtin_module_names:
        return True
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return name in names
    library = os.path.join(os.path.dirname(os.__file__), name)
    return os.path.exists(library + ".py") or os.path.isdir(library)


def load(file: str, texts: dict[str, str], alone: bool = False, own: Optional[str] = None) -> tuple[ModuleType, Finder]:
    """Runs the file; `NotLoaded` says why it can't be."""
    if file not in texts:
        raise NotLoaded("IoError", f"the text of {file} did not come with `initialize`", "this is a fault of the crib")
    forget()
    finder = Finder(file, texts, alone, own)
    sys.meta_path[:0] = [finder, StandIn(below=True)]
    sys.meta_path.append(StandIn(below=False))
    sys.dont_write_bytecode = True
    sys.argv = [file]
    try:
        __import__(finder.name)
        return sys.modules[finder.name], finder
    except SyntaxError as error:
        raise bad_syntax(error, file) from error
    except ModuleNotFoundError as error:
        raise no_module(error, file, texts) from error
    except SystemExit as error:
        raise not_imported(
            error,
            file,
            "the file calls sys.exit while it is loaded",
            'put what it does under `if __name__ == "__main__":`',
        ) from error
    except RecursionError as error:
        raise not_imported(
            error, file, f"{type_of(error)}: {words_of(error)}", "it calls itself without end"
        ) from error
    except BaseException as error:
        words = words_of(error)
        if isinstance(error, ValueError) and "null byte" in words:
            raise NotLoaded("SyntaxError", words, "take the null bytes out of the file") from error
        message = f"{type_of(error)}: {words}" if words else type_of(error)
        raise not_imported(error, file, message, "the file must load without an error; see the line") from error


def forget() -> None:
    """Takes an earlier attempt out of the way."""
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]:
        module = sys.modules.pop(name)
        for other in [other for other, known in sys.modules.items() if known is module]:
            del sys.modules[other]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, (Finder, StandIn))]


def not_imported(error: BaseException, file: str, message: str, hint: str) -> NotLoaded:
    return NotLoaded("ImportError", message, hint, line_in(error, file))


def bad_syntax(error: SyntaxError, file: str) -> NotLoaded:
    words = error.msg or "invalid syntax"
    hint = "fix the line"
    if isinstance(error, (IndentationError, TabError)):
        hint = "fix the indentation of the line"
    if error.filename == file:
        return NotLoaded("SyntaxError", words, hint, error.lineno, error.offset)
    other = os.path.basename(str(error.filename))
    return NotLoaded(
        "SyntaxError", f"{other}, line {error.lineno}: {words}", hint + f" in {other}", line_in(error, file)
    )


def no_module(error: ModuleNotFoundError, file: str, texts: dict[str, str]) -> NotLoaded:
    name = error.name or ""
    line = line_in(error, file)
    if name == PACKAGE or name.startswith(PACKAGE + "."):
        below = name[len(PACKAGE) + 1 :].replace(".", "/")
        return NotLoaded(
            "ImportError",
            f"there is no file {below}.py beside this file",
            f"write {below}.py, or fix the import",
            line,
        )
    first = name.partition(".")[0]
    if first in ("langchain", "langchain_core"):
        first = "langchain-core" if first == "langchain_core" else first
    elif not first or first in sys.modules:
        return NotLoaded("ImportError", words_of(error), "fix the import", line)
    package = DISTRIBUTIONS.get(first, first)
    hint = (
        f'name it at the top of the file: `# /// script`, `# dependencies = ["{package}"]`, `# ///`; '
        f"or add a line `{package}` to requirements.txt beside the file"
    )
    return NotLoaded("ImportError", f"there is no module {name!r}", hint, line)
