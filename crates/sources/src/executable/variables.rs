//! Which variables a tool may set for itself in `env`.
//!
//! Refused is what decides which code is loaded, or where connections go, before or beside the program that `command`
//! names: a person who reads `command` and says yes must not get another program. The walls hold such code too; this
//! keeps it out of what starts before them, and out of a yes that was meant for something else. What only changes how
//! the program itself behaves (`TZ`, `LANG`, `HOME`, `TMPDIR`, `PYTHONUNBUFFERED`, …) is its own business.
//!
//! A person may hand over their own value of any variable all the same: `toolcrib grant NAME --env VAR`.

use std::path::Path;

/// Variables that are refused for one reason. An entry that ends in `*` stands for all that begin so.
struct Group {
    /// What they do, as a person reads it.
    does: &'static str,
    names: &'static [&'static str],
    /// Those of them that do no such thing.
    but: &'static [&'static str],
    /// Whether small letters mean the same.
    any_case: bool,
}

const fn group(does: &'static str, names: &'static [&'static str]) -> Group {
    Group {
        does,
        names,
        but: &[],
        any_case: false,
    }
}

const LOADS: &str = "decides what code is loaded into programs";
const FINDS: &str = "decides how names of hosts are looked up";
const RUNS: &str = "decides which programs git runs and which settings it reads";
const CALLS: &str = "decides where connections go, which is the proxy's part";
const KEYS: &str = "writes down the keys of encrypted connections";

const REFUSED: [Group; 14] = [
    // The dynamic loader: into every program, before its first line.
    group(LOADS, &["LD_*", "DYLD_*", "GLIBC_TUNABLES"]),
    // The C library: modules for character sets, files of messages and locales, what its allocator writes where.
    Group {
        does: LOADS,
        names: &["GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_*"],
        but: &["MALLOC_ARENA_MAX"],
        any_case: false,
    },
    // Its resolver.
    group(
        FINDS,
        &["RES_OPTIONS", "HOSTALIASES", "LOCALDOMAIN", "RESOLV_*"],
    ),
    // Python: modules, start-up files, what a breakpoint or a warning's class imports. `PYTHONUNBUFFERED` and the like
    // stay.
    group(
        LOADS,
        &[
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONSTARTUP",
            "PYTHONINSPECT",
            "PYTHONBREAKPOINT",
            "PYTHONWARNINGS",
            "PYTHONEXECUTABLE",
            "PYTHONPLATLIBDIR",
            "PYTHONUSERBASE",
            "PYTHONPYCACHEPREFIX",
        ],
    ),
    // Node, Bun, Deno. `NODE_ENV` stays, and `NODE_EXTRA_CA_CERTS`, which loads certificates and no code.
    group(
        LOADS,
        &[
            "NODE_OPTIONS",
            "NODE_PATH",
            "NODE_REPL_EXTERNAL_MODULE",
            "BUN_*",
            "DENO_DIR",
        ],
    ),
    // Shells: files that are read and code that is run before a script's first line.
    group(
        LOADS,
        &[
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "PROMPT_COMMAND",
            "BASH_FUNC_*",
            "BASH_LOADABLES_PATH",
            "ZDOTDIR",
            "FPATH",
        ],
    ),
    // Perl and Ruby.
    group(
        LOADS,
        &[
            "PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "RUBYOPT", "RUBYLIB", "GEM_HOME",
            "GEM_PATH", "BUNDLE_*",
        ],
    ),
    // Java and .NET: agents, profilers, start-up hooks, where classes and runtimes lie.
    group(
        LOADS,
        &[
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "OPENJ9_JAVA_OPTIONS",
            "CLASSPATH",
            "DOTNET_STARTUP_HOOKS",
            "DOTNET_ADDITIONAL_DEPS",
            "DOTNET_SHARED_STORE",
            "DOTNET_ROOT*",
            "CORECLR_*",
            "COR_*",
            "COMPlus_*",
            "MONO_*",
        ],
    ),
    // Lua, PHP, R, Julia, Erlang, Tcl.
    Group {
        does: LOADS,
        names: &[
            "LUA_INIT*",
            "LUA_PATH*",
            "LUA_CPATH*",
            "PHPRC",
            "PHP_INI_SCAN_DIR",
            "R_PROFILE*",
            "R_ENVIRON*",
            "R_LIBS*",
            "R_HOME",
            "R_DEFAULT_PACKAGES",
            "JULIA_*",
            "ERL_*",
            "TCLLIBPATH",
        ],
        but: &["JULIA_NUM_THREADS"],
        any_case: false,
    },
    // OpenSSL, which nearly every program loads: engines and providers.
    group(
        LOADS,
        &["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"],
    ),
    group(KEYS, &["SSLKEYLOGFILE"]),
    // Toolkits with plug-ins.
    group(
        LOADS,
        &[
            "GTK_MODULES",
            "GTK_PATH",
            "GIO_EXTRA_MODULES",
            "GIO_MODULE_DIR",
            "QT_PLUGIN_PATH",
            "QT_QPA_PLATFORM_PLUGIN_PATH",
        ],
    ),
    // Git, which runs what its settings name. Whose commit it is, and whether it asks, stays.
    Group {
        does: RUNS,
        names: &["GIT_*"],
        but: &[
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_AUTHOR_DATE",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
            "GIT_COMMITTER_DATE",
            "GIT_TERMINAL_PROMPT",
            "GIT_OPTIONAL_LOCKS",
        ],
        any_case: false,
    },
    // The way to granted hosts leads through the crib's proxy; programs read these in both spellings.
    Group {
        does: CALLS,
        names: &[
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "FTP_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
        ],
        but: &[],
        any_case: true,
    },
];

/// Why a tool may not set this variable to this value: what is wrong, and what helps.
pub fn refused(name: &str, value: &str) -> Option<(String, String)> {
    if name == "PATH" {
        return relative_path(value);
    }
    let group = REFUSED.iter().find(|group| group.has(name))?;
    let what = format!("can't be set by a tool: it {}", group.does);
    let hint = format!(
        "let the program see to it itself; your own value of it is handed over with `toolcrib grant NAME --env {name}`"
    );
    Some((what, hint))
}

/// `PATH` is the tool's to set, for the programs that its process starts. What that process is was looked up before, on the
/// user's. But a relative entry would be looked up from wherever the process starts, which nobody said yes to.
fn relative_path(value: &str) -> Option<(String, String)> {
    let wrong = value
        .split(':')
        .find(|entry| !Path::new(entry).is_absolute())?;
    let shown: String = wrong.chars().take(60).collect();
    Some((
        format!("has `{shown}`, which is not an absolute path"),
        "write every folder from `/` on, such as \"/usr/local/bin:/usr/bin:/bin\"; nothing is filled in for `$PATH`".to_owned(),
    ))
}

impl Group {
    fn has(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        let name = if self.any_case { &upper } else { name };
        let fits = |entry: &&str| match entry.strip_suffix('*') {
            Some(front) => name.starts_with(front),
            None => name == *entry,
        };
        self.names.iter().any(fits) && !self.but.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::is_variable;
    use crate::permits;

    #[test]
    fn every_name_of_the_table_is_refused_and_can_still_be_granted() {
        for group in &REFUSED {
            for entry in group.names {
                let name = entry.replace('*', "X");
                let (what, hint) = refused(&name, "x").unwrap_or_else(|| panic!("{name}"));
                assert!(what.contains(group.does), "{name}: {what}");
                assert!(hint.contains(&format!("--env {name}")), "{hint}");
                assert!(is_variable(&name) && permits::is_variable(&name), "{name}");
                let small = refused(&name.to_ascii_lowercase(), "x").is_some();
                assert_eq!(small, group.any_case, "{name} in small letters");
            }
            for name in group.but {
                assert_eq!(refused(name, "x"), None, "{name}");
            }
        }
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "GIT_SSH_COMMAND",
            "no_proxy",
            "Https_Proxy",
        ] {
            assert!(refused(name, "x").is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_the_tools_own_business_is_set() {
        for name in [
            "TZ",
            "LANG",
            "HOME",
            "TMPDIR",
            "API_KEY",
            "PYTHONUNBUFFERED",
            "PYTHONDONTWRITEBYTECODE",
            "NODE_ENV",
            "NODE_EXTRA_CA_CERTS",
            "SSL_CERT_FILE",
            "ENVIRONMENT",
            "OLD_STYLE",
            "GITHUB_TOKEN",
            "PROXY",
        ] {
            assert_eq!(refused(name, "x"), None, "{name}");
        }
    }

    #[test]
    fn a_path_has_no_relative_entries() {
        assert_eq!(refused("PATH", "/opt/x/bin:/usr/bin"), None);
        for value in [
            "",
            "bin",
            "/usr/bin:",
            ":/usr/bin",
            "/usr/bin:./x",
            "$PATH:/opt/x",
        ] {
            assert!(refused("PATH", value).is_some(), "{value:?}");
        }
    }
}
