//! The lists: which modules, functions and attributes of Python deserve a look.

/// Modules that start processes, run code, open sockets, or lead to those that do.
const MODULES: [&str; 37] = [
    "__builtin__",
    "_ctypes",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "_imp",
    "_posixsubprocess",
    "_socket",
    "_thread",
    "_winapi",
    "bdb",
    "builtins",
    "cffi",
    "code",
    "codeop",
    "commands",
    "concurrent",
    "ctypes",
    "imp",
    "importlib",
    "multiprocessing",
    "nt",
    "os",
    "pdb",
    "pexpect",
    "pip",
    "popen2",
    "posix",
    "pty",
    "runpy",
    "sh",
    "shutil",
    "socket",
    "socketserver",
    "subprocess",
    "sys",
    "threading",
    "zipimport",
];

/// Dotted modules of the same kind, below innocent ones.
const SUBMODULES: [&str; 5] = [
    "asyncio.subprocess",
    "distutils.spawn",
    "http.server",
    "six.moves.builtins",
    "xmlrpc.server",
];

/// Modules whose names are ordinary words elsewhere: only the standard library is known to mean them.
const WORDS: [&str; 9] = [
    "code",
    "codeop",
    "commands",
    "concurrent",
    "imp",
    "nt",
    "posix",
    "sh",
    "threading",
];

/// Modules of the standard library that lead to others because they import them.
const LIBRARY: [&str; 34] = [
    "argparse",
    "ast",
    "asyncio",
    "base64",
    "codecs",
    "collections",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "functools",
    "glob",
    "http",
    "inspect",
    "io",
    "json",
    "linecache",
    "logging",
    "pathlib",
    "pickle",
    "platform",
    "random",
    "re",
    "site",
    "string",
    "tempfile",
    "traceback",
    "typing",
    "urllib",
    "warnings",
    "zipfile",
];

/// The module that an import of `module` brings, if it deserves a look.
pub fn module(module: &str) -> Option<&str> {
    let root = module.split('.').next().unwrap_or(module);
    if MODULES.contains(&root) {
        return Some(module);
    }
    SUBMODULES
        .into_iter()
        .find(|banned| module.strip_prefix(banned).is_some_and(ends))
        .map(|_| module)
}

fn ends(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// The module that `below.name` is, when another module leads to it.
pub fn through<'a>(below: &str, name: &'a str) -> Option<&'a str> {
    let root = below.split('.').next().unwrap_or(below);
    if MODULES.contains(&root) && root != "sys" {
        // `os.path`, `importlib.util`: a part of what was told already. But `shutil.os` is not a part.
        return (below == root && MODULES.contains(&name) && name != root && !part(root, name))
            .then_some(name);
    }
    let bare = name.strip_prefix('_').unwrap_or(name);
    let meant = if MODULES.contains(&name) { name } else { bare };
    let known = MODULES.contains(&meant) && (!WORDS.contains(&meant) || LIBRARY.contains(&root));
    known.then_some(meant)
}

fn part(root: &str, name: &str) -> bool {
    matches!((root, name), ("socket", "socket") | ("ctypes", "util"))
}

/// Functions that run code, start processes, or reach into the interpreter, by module.
const CALLS: [(&str, &[&str]); 29] = [
    ("__spec__", &["loader"]),
    ("_pickle", &["load", "loads", "Unpickler"]),
    (
        "asyncio",
        &["create_subprocess_exec", "create_subprocess_shell"],
    ),
    (
        "builtins",
        &["__import__", "breakpoint", "compile", "eval", "exec"],
    ),
    ("cProfile", &["run", "runctx"]),
    ("cloudpickle", &["load", "loads"]),
    (
        "code",
        &["InteractiveConsole", "InteractiveInterpreter", "interact"],
    ),
    ("codeop", &["compile_command"]),
    (
        "ctypes",
        &["CDLL", "PyDLL", "WinDLL", "cdll", "pythonapi", "windll"],
    ),
    ("dill", &["load", "loads"]),
    ("gc", &["get_objects", "get_referents", "get_referrers"]),
    ("importlib", &["__import__", "import_module", "reload"]),
    ("jsonpickle", &["decode"]),
    ("marshal", &["load", "loads"]),
    (
        "os",
        &[
            "fork",
            "forkpty",
            "kill",
            "killpg",
            "popen",
            "posix_spawn",
            "posix_spawnp",
            "startfile",
            "system",
        ],
    ),
    ("pickle", &["Unpickler", "load", "loads"]),
    ("pkgutil", &["find_loader", "get_loader", "resolve_name"]),
    (
        "posix",
        &[
            "fork",
            "forkpty",
            "kill",
            "killpg",
            "posix_spawn",
            "posix_spawnp",
            "system",
        ],
    ),
    ("profile", &["run", "runctx"]),
    ("pty", &["fork", "spawn"]),
    (
        "pydoc",
        &["locate", "pipepager", "safeimport", "tempfilepager"],
    ),
    ("runpy", &["run_module", "run_path"]),
    ("shelve", &["open"]),
    (
        "subprocess",
        &[
            "Popen",
            "call",
            "check_call",
            "check_output",
            "getoutput",
            "getstatusoutput",
            "run",
        ],
    ),
    (
        "sys",
        &["_current_frames", "_getframe", "setprofile", "settrace"],
    ),
    ("timeit", &["main"]),
    ("unittest.mock", &["_importer"]),
    ("webbrowser", &["get", "open", "open_new", "open_new_tab"]),
    ("yaml", &["UnsafeLoader", "unsafe_load", "unsafe_load_all"]),
];

/// Does this path name a function that deserves a look?
pub fn call(path: &str) -> bool {
    let Some((module, name)) = path.rsplit_once('.') else {
        return false;
    };
    let run = matches!(module, "os" | "posix" | "nt")
        && (name.starts_with("exec") || name.starts_with("spawn"));
    let listed = CALLS
        .binary_search_by_key(&module, |(module, _)| module)
        .is_ok_and(|at| CALLS[at].1.contains(&name));
    run || listed
}

/// Types that are innocent where they are only asked for, and make a function from a code object when called.
pub fn makes_code(path: &str) -> bool {
    matches!(
        path,
        "types.CodeType" | "types.FunctionType" | "types.LambdaType"
    )
}

/// Functions that run a string given as their first argument, and are innocent otherwise.
pub fn runs_text(path: &str) -> bool {
    matches!(
        path,
        "timeit.timeit" | "timeit.repeat" | "timeit.Timer" | "trace.Trace.run"
    )
}

/// Attributes that lead from any object to the interpreter's insides.
const TRICKS: [&str; 17] = [
    "__builtins__",
    "__globals__",
    "__import__",
    "__loader__",
    "ag_frame",
    "cr_frame",
    "exec_module",
    "f_builtins",
    "f_globals",
    "f_locals",
    "find_module",
    "func_globals",
    "gi_frame",
    "load_module",
    "loader_state",
    "subprocess_exec",
    "subprocess_shell",
];

pub fn trick(attribute: &str) -> bool {
    TRICKS.contains(&attribute)
}

/// Names of the interpreter that are no functions but doors.
pub fn door(name: &str) -> bool {
    matches!(name, "__builtins__" | "__loader__")
}

/// Words that nobody puts together from pieces by chance, where a name is looked up.
pub fn spelled(word: &str) -> bool {
    trick(word)
        || matches!(
            word,
            "eval"
                | "exec"
                | "compile"
                | "system"
                | "popen"
                | "Popen"
                | "__subclasses__"
                | "__class__"
                | "__base__"
                | "__bases__"
                | "__mro__"
                | "__code__"
                | "__dict__"
        )
        || (MODULES.contains(&word) && !WORDS.contains(&word))
}

/// The trick that a format string plays, as in `"{0.__globals__}"`.
pub fn in_format(text: &str) -> Option<&'static str> {
    let doors = [
        "__globals__",
        "__builtins__",
        "__subclasses__",
        "__import__",
        "f_globals",
    ];
    doors
        .into_iter()
        .find(|word| text.contains(&format!(".{word}")) || text.contains(&format!("[{word}")))
}

/// Built-in functions and types, by which a name that nobody bound is known.
pub fn builtin(name: &str) -> bool {
    kind(name)
        || matches!(
            name,
            "__import__"
                | "breakpoint"
                | "chr"
                | "compile"
                | "eval"
                | "exec"
                | "getattr"
                | "globals"
                | "hasattr"
                | "locals"
                | "map"
                | "ord"
                | "print"
                | "len"
                | "vars"
                | "input"
                | "open"
                | "reversed"
                | "setattr"
                | "delattr"
                | "hex"
                | "repr"
                | "sorted"
                | "sum"
                | "iter"
                | "next"
                | "id"
                | "abs"
                | "dir"
                | "format"
        )
}

/// Built-in types.
pub fn kind(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytearray"
            | "bytes"
            | "classmethod"
            | "complex"
            | "dict"
            | "float"
            | "frozenset"
            | "int"
            | "list"
            | "object"
            | "property"
            | "set"
            | "staticmethod"
            | "str"
            | "tuple"
            | "type"
            | "Exception"
            | "BaseException"
    )
}

/// Names whose binding in a branch that may not run hides nothing.
pub fn guarded(name: &str) -> bool {
    call(&format!("builtins.{name}"))
        || door(name)
        || matches!(name, "getattr" | "globals" | "vars" | "type" | "object")
}
