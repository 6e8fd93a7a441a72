//! The lists: which modules, functions and globals of JavaScript deserve a look.

use crate::findings::{CALL, DYNAMIC, ENVIRONMENT, MODULE, NETWORK, TRICK, WRITE};

/// Modules that start processes or threads, or run code.
const STARTERS: [&str; 16] = [
    "bun:ffi",
    "child_process",
    "cluster",
    "cross-spawn",
    "execa",
    "inspector",
    "isolated-vm",
    "node-pty",
    "repl",
    "shelljs",
    "tinyexec",
    "vm",
    "vm2",
    "wasi",
    "worker_threads",
    "zx",
];

/// Modules that talk to other machines.
const TALKERS: [&str; 14] = [
    "axios",
    "dgram",
    "dns",
    "got",
    "http",
    "http2",
    "https",
    "net",
    "node-fetch",
    "socket.io-client",
    "superagent",
    "tls",
    "undici",
    "ws",
];

/// Other modules of the runtime that are known by name.
const BUILTIN: [&str; 26] = [
    "assert",
    "async_hooks",
    "buffer",
    "console",
    "constants",
    "crypto",
    "diagnostics_channel",
    "domain",
    "events",
    "fs",
    "module",
    "os",
    "path",
    "perf_hooks",
    "punycode",
    "querystring",
    "readline",
    "sqlite",
    "stream",
    "string_decoder",
    "test",
    "timers",
    "tty",
    "url",
    "util",
    "v8",
];

/// What a module is called here: runtime modules by their bare name, packages with `pkg:` before it.
pub fn canonical(specifier: &str) -> String {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    match bare {
        "process" => return "global.process".to_owned(),
        "bun" => return "global.Bun".to_owned(),
        "fs-extra" | "graceful-fs" => return "fs".to_owned(),
        _ => {}
    }
    let root = bare.split('/').next().unwrap_or(bare);
    if STARTERS.contains(&root) || TALKERS.contains(&root) || BUILTIN.contains(&root) {
        bare.replace('/', ".")
    } else {
        format!("pkg:{specifier}")
    }
}

/// Why the import of a module deserves a look.
pub fn module(specifier: &str) -> Option<(&'static str, String)> {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let root = bare.split('/').next().unwrap_or(bare);
    if STARTERS.contains(&root) {
        Some((MODULE, format!("imports `{bare}`")))
    } else if TALKERS.contains(&root) {
        Some((
            NETWORK,
            format!("imports `{bare}`, which talks to other machines"),
        ))
    } else if ["data:", "blob:", "http:", "https:"]
        .iter()
        .any(|scheme| specifier.starts_with(scheme))
    {
        Some((
            DYNAMIC,
            "loads code from an address, not from a file".to_owned(),
        ))
    } else {
        None
    }
}

const FILE_WRITES: [&str; 34] = [
    "appendFile",
    "chmod",
    "chown",
    "copyFile",
    "cp",
    "createWriteStream",
    "emptyDir",
    "ensureDir",
    "ensureFile",
    "fchmod",
    "fchown",
    "ftruncate",
    "futimes",
    "lchmod",
    "lchown",
    "link",
    "lutimes",
    "mkdir",
    "mkdirp",
    "mkdtemp",
    "move",
    "outputFile",
    "outputJson",
    "remove",
    "rename",
    "rm",
    "rmdir",
    "symlink",
    "truncate",
    "unlink",
    "utimes",
    "write",
    "writeFile",
    "writev",
];

const PROCESS: [&str; 16] = [
    "_debugProcess",
    "_kill",
    "_linkedBinding",
    "abort",
    "binding",
    "dlopen",
    "execve",
    "exit",
    "kill",
    "mainModule",
    "reallyExit",
    "setegid",
    "seteuid",
    "setgid",
    "setuid",
    "umask",
];

const LOADER: [&str; 9] = [
    "_compile",
    "_extensions",
    "_load",
    "_preloadModules",
    "_resolveFilename",
    "createRequire",
    "register",
    "registerHooks",
    "runMain",
];

/// Why the use of something deserves a look.
pub fn used(path: &str) -> Option<(&'static str, String)> {
    let (root, rest) = path.split_once('.')?;
    match root {
        "global" => global(rest),
        "fs" => {
            let name = rest.strip_prefix("promises.").unwrap_or(rest);
            let bare = name.strip_suffix("Sync").unwrap_or(name);
            FILE_WRITES
                .contains(&bare)
                .then(|| (WRITE, format!("writes files with `{path}`")))
        }
        "module" => {
            let name = rest.strip_prefix("Module.").unwrap_or(rest);
            let name = name.strip_prefix("prototype.").unwrap_or(name);
            LOADER
                .contains(&name)
                .then(|| (TRICK, format!("loads modules with `{path}`")))
        }
        "import" if rest == "meta.env" => Some((
            ENVIRONMENT,
            "reads the environment with `import.meta.env`".to_owned(),
        )),
        "v8" if rest == "setFlagsFromString" => Some((CALL, format!("uses `{path}`"))),
        _ => STARTERS
            .contains(&root)
            .then(|| (CALL, format!("uses `{path}`"))),
    }
}

fn global(path: &str) -> Option<(&'static str, String)> {
    let talks = || Some((NETWORK, format!("talks to other machines with `{path}`")));
    let writes = || Some((WRITE, format!("writes files with `{path}`")));
    let uses = || Some((CALL, format!("uses `{path}`")));
    match path {
        "eval" | "Worker" | "SharedWorker" | "importScripts" => return uses(),
        "fetch" | "WebSocket" | "XMLHttpRequest" | "EventSource" | "WebTransport" => {
            return talks();
        }
        "process.env" | "Bun.env" | "Deno.env" => {
            return Some((ENVIRONMENT, format!("reads the environment with `{path}`")));
        }
        _ => {}
    }
    let (root, name) = path.split_once('.')?;
    let bare = name.strip_suffix("Sync").unwrap_or(name);
    match root {
        "process" if PROCESS.contains(&name) => uses(),
        "Bun" => match name {
            "spawn" | "spawnSync" | "$" | "plugin" | "openInEditor" => uses(),
            "write" => writes(),
            "connect" | "dns" | "fetch" | "listen" | "redis" | "s3" | "serve" | "sql"
            | "udpSocket" => talks(),
            _ => None,
        },
        "Deno" => match bare {
            "run" | "Command" | "dlopen" | "exit" | "kill" => uses(),
            "writeTextFile" | "writeFile" | "remove" | "rename" | "mkdir" | "create"
            | "copyFile" | "symlink" | "link" | "truncate" | "chmod" | "chown" | "makeTempFile"
            | "makeTempDir" | "utime" => writes(),
            "connect" | "connectTls" | "listen" | "listenTls" | "listenDatagram" | "serve"
            | "resolveDns" => talks(),
            _ => None,
        },
        _ => None,
    }
}

/// Functions that open a file, for writing if their second argument says so.
pub fn opens(path: &str) -> bool {
    matches!(path, "fs.open" | "fs.openSync" | "fs.promises.open")
}

/// Does this name the function that makes a tool?
pub fn makes_tool(path: &str) -> bool {
    let Some(rest) = path
        .strip_prefix("pkg:")
        .and_then(|rest| rest.strip_suffix(".tool"))
    else {
        return false;
    };
    let package = rest.strip_suffix("/tool").unwrap_or(rest);
    matches!(
        package,
        "@toolcrib/plugin" | "@opencode-ai/plugin" | "@atomic/plugin"
    )
}

/// Paths from which nothing should be taken by a name made at run time.
pub fn closed(path: &str) -> bool {
    matches!(
        path,
        "global" | "global.process" | "global.Bun" | "global.Deno" | "module"
    ) || STARTERS.contains(&path)
}

/// Words that nobody puts together from pieces by chance, where a name is looked up.
pub fn spelled(word: &str) -> bool {
    matches!(
        word,
        "eval"
            | "Function"
            | "constructor"
            | "require"
            | "process"
            | "child_process"
            | "binding"
            | "dlopen"
            | "mainModule"
            | "_load"
            | "execSync"
            | "spawn"
            | "spawnSync"
            | "__proto__"
    )
}
