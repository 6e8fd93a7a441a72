//! The programs that read an argument as a script, and how each reads its words.

/// Such a program.
pub struct Evaluator {
    /// Its names, without the version at the end (`python3.11` is `python`).
    pub names: &'static [&'static str],
    /// Letters of short options that a script follows.
    pub script: &'static str,
    /// Whole words that a script follows, behind a `=` too.
    pub words: &'static [&'static str],
    /// Letters of short options that something else follows.
    pub value: &'static str,
    /// Longer options that something else follows, with how many words that is.
    pub values: &'static [(&'static str, usize)],
    /// What a word is that belongs to no option.
    pub plain: Rest,
    /// How many of those come before.
    pub before: usize,
    /// What follows the script is the script's own.
    pub ends: bool,
    /// What follows a letter in the same word is its script.
    pub attaches: bool,
    /// No other long option has a value that is the next word.
    pub closed: bool,
}

/// What words are that belong to no option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The first names a file, and what follows is for that.
    Nothing,
    /// The first is the script, where no option gave one.
    First,
    /// They are the script, all of them together.
    All,
    /// Each is one.
    Each,
}

/// Reads options alone, one letter with its script each.
const PLAIN: Evaluator = Evaluator {
    names: &[],
    script: "",
    words: &[],
    value: "",
    values: &[],
    plain: Rest::Nothing,
    before: 0,
    ends: false,
    attaches: true,
    closed: false,
};

const EVALUATORS: [Evaluator; 25] = [
    Evaluator {
        names: &[
            "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "yash", "csh", "tcsh",
        ],
        script: "c",
        words: &["--command"],
        value: "oO",
        ends: true,
        attaches: false,
        ..PLAIN
    },
    Evaluator {
        names: &["fish", "nu", "xonsh", "elvish"],
        script: "cC",
        words: &["--command", "--commands", "--init-command", "--execute"],
        value: "dof",
        ends: true,
        attaches: false,
        ..PLAIN
    },
    Evaluator {
        names: &["pwsh", "powershell"],
        words: &[
            "-c",
            "-e",
            "-ec",
            "-command",
            "-Command",
            "-CommandWithArgs",
            "-EncodedCommand",
        ],
        plain: Rest::All,
        before: usize::MAX,
        ..PLAIN
    },
    Evaluator {
        names: &["python", "pypy"],
        script: "c",
        value: "WXQ",
        values: &[("--check-hash-based-pycs", 1)],
        ends: true,
        closed: true,
        ..PLAIN
    },
    // Its modules may have code behind their names.
    Evaluator {
        names: &["perl", "raku"],
        script: "eEMmF",
        value: "I",
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["ruby", "jruby", "crystal"],
        script: "e",
        words: &["eval"],
        value: "IrCEK",
        ..PLAIN
    },
    Evaluator {
        names: &["node", "nodejs", "bun", "tsx", "ts-node", "electron"],
        script: "ep",
        words: &[
            "--eval",
            "--print",
            "--import",
            "--loader",
            "--experimental-loader",
            "exec",
        ],
        value: "rC",
        attaches: false,
        ..PLAIN
    },
    Evaluator {
        names: &["deno"],
        words: &["eval", "--eval"],
        ends: true,
        ..PLAIN
    },
    Evaluator {
        names: &["php"],
        script: "rRBE",
        words: &[
            "--run",
            "--process-begin",
            "--process-code",
            "--process-end",
        ],
        value: "cdzS",
        ..PLAIN
    },
    Evaluator {
        names: &["julia"],
        script: "eE",
        words: &["--eval", "--print"],
        value: "tpLJCHm",
        ..PLAIN
    },
    Evaluator {
        names: &["Rscript", "R"],
        script: "e",
        value: "fg",
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["elixir", "iex", "erl", "swipl"],
        script: "egt",
        words: &["--eval", "--rpc-eval", "-eval", "-goal", "--goal"],
        value: "rSp",
        attaches: false,
        ..PLAIN
    },
    Evaluator {
        names: &[
            "lua",
            "luajit",
            "osascript",
            "groovy",
            "scala",
            "ghc",
            "clojure",
            "clj",
            "racket",
            "octave",
            "gnuplot",
            "dc",
            "guile",
            "expect",
            "nim",
            "emacs",
            "sbcl",
            "ecl",
            "nix",
            "nix-instantiate",
        ],
        script: "eEc",
        words: &[
            "--eval",
            "-eval",
            "--execute",
            "--expression",
            "--expr",
            "--print",
            "--load",
        ],
        value: "lLjsq",
        ..PLAIN
    },
    Evaluator {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk", "goawk"],
        script: "e",
        words: &["--source"],
        value: "fFvilEW",
        values: &[
            ("--assign", 1),
            ("--exec", 1),
            ("--field-separator", 1),
            ("--file", 1),
            ("--include", 1),
            ("--load", 1),
        ],
        plain: Rest::First,
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["sed", "gsed"],
        script: "e",
        words: &["--expression"],
        value: "fl",
        values: &[("--file", 1), ("--line-length", 1)],
        plain: Rest::First,
        closed: true,
        ..PLAIN
    },
    // These read variables and files where their programs say so.
    Evaluator {
        names: &["jq", "gojq", "jaq", "yq"],
        words: &["eval", "eval-all", "e", "ea", "--expression"],
        value: "fLpo",
        values: &[
            ("--arg", 2),
            ("--argjson", 2),
            ("--slurpfile", 2),
            ("--rawfile", 2),
            ("--indent", 1),
            ("--from-file", 1),
            ("--library-path", 1),
        ],
        plain: Rest::First,
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["sqlite", "duckdb"],
        words: &["-cmd", "-c", "-s"],
        value: "",
        values: &[
            ("-init", 1),
            ("-newline", 1),
            ("-nullvalue", 1),
            ("-separator", 1),
            ("-vfs", 1),
        ],
        plain: Rest::All,
        before: 1,
        ..PLAIN
    },
    Evaluator {
        names: &["psql"],
        script: "c",
        words: &["--command"],
        value: "dUhpPfvFRToL",
        before: usize::MAX,
        ..PLAIN
    },
    Evaluator {
        names: &["mysql", "mariadb", "mongosh"],
        script: "e",
        words: &["--execute", "--eval"],
        value: "DhPSu",
        before: usize::MAX,
        ..PLAIN
    },
    // Words of it set variables, and variables have code.
    Evaluator {
        names: &["make", "gmake", "bmake"],
        words: &["--eval"],
        value: "CfIoW",
        values: &[("--directory", 1), ("--file", 1)],
        plain: Rest::Each,
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["ssh"],
        value: "BbcDEeFIiJLlmOopQRSWw",
        plain: Rest::All,
        before: 1,
        ..PLAIN
    },
    Evaluator {
        names: &["watch"],
        value: "nq",
        values: &[("--interval", 1)],
        plain: Rest::All,
        closed: true,
        ..PLAIN
    },
    Evaluator {
        names: &["su", "runuser", "flock", "script"],
        script: "c",
        words: &["--command", "--session-command"],
        value: "gGswEIOBTm",
        before: usize::MAX,
        ..PLAIN
    },
    // What it starts is looked at by itself.
    Evaluator {
        names: &["env"],
        script: "S",
        words: &["--split-string"],
        value: "uC",
        ..PLAIN
    },
    Evaluator {
        names: &["vim", "vi", "nvim", "ex", "view", "gdb", "lldb"],
        script: "co",
        words: &[
            "--cmd",
            "-ex",
            "-iex",
            "-eval-command",
            "--eval-command",
            "--one-line",
        ],
        value: "Ssxp",
        before: usize::MAX,
        ..PLAIN
    },
];

impl Evaluator {
    /// The one of this name or path.
    pub fn named(word: &str) -> Option<&'static Evaluator> {
        let name = word.rsplit('/').next().unwrap_or_default();
        let bare = |name: &str| -> String {
            let end = |letter: char| letter.is_ascii_digit() || ".-".contains(letter);
            name.trim_end_matches(end).to_owned()
        };
        // `bash-5.2`, and `python3.11-dbg`; `ssh-keygen` is another program.
        let front = name.split('-').next().unwrap_or_default();
        let front = front
            .ends_with(|letter: char| letter.is_ascii_digit())
            .then_some(front);
        let names = [Some(name), front].map(|name| name.map(bare).unwrap_or_default());
        let known = |evaluator: &&Evaluator| {
            let mut names = names.iter().filter(|name| !name.is_empty());
            names.any(|name| evaluator.names.contains(&name.as_str()))
        };
        EVALUATORS.iter().find(known)
    }
}
