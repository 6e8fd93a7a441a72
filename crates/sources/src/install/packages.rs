//! What a list of packages may hold: names, versions and markers of packages in the index, and nothing else. Options, URLs,
//! paths and repositories are refused, because an installer would do with them what nobody was asked about.

use serde_json::{Map, Value};

/// The most packages that one list may name.
const MAX: usize = 200;
/// The longest entry.
const MAX_LINE: usize = 400;

/// Packages that a list names, each as it is handed to the installer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages(Vec<String>);

impl Packages {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// As a person reads them.
    pub fn shown(&self) -> String {
        match self.0.len() {
            0..=6 => self.0.join(", "),
            many => format!("{} and {} more", self.0[..5].join(", "), many - 5),
        }
    }

    /// What makes one list differ from another.
    pub fn text(&self) -> String {
        self.0.join("\n")
    }

    /// Reads a list of Python packages, one to a line, or says which line can't be taken and why.
    pub fn python(text: &str) -> Result<Packages, String> {
        let mut packages = Vec::new();
        for (index, written) in text.lines().enumerate() {
            let line = uncommented(written).trim();
            if line.is_empty() {
                continue;
            }
            let one = requirement(line)
                .map_err(|why| format!("line {} is `{}`: {why}", index + 1, short(line)))?;
            packages.push(one);
        }
        limited(packages)
    }

    /// Reads the `dependencies` of a `package.json`: a package of the registry and a range of its versions, each as
    /// `name@range`.
    pub fn node(dependencies: &Map<String, Value>) -> Result<Packages, String> {
        let mut packages = Vec::new();
        for (name, range) in dependencies {
            let range = range.as_str().unwrap_or("\u{0}").trim();
            let why = match (is_node_name(name), is_node_range(range)) {
                (true, true) => {
                    packages.push(format!("{name}@{range}"));
                    continue;
                }
                (false, _) => "its name is none that a registry has",
                (true, false) => {
                    "only versions, ranges and tags of packages in the registry can be installed, no URLs, paths or repositories"
                }
            };
            return Err(format!("`{}: {}`: {why}", short(name), short(range)));
        }
        packages.sort();
        limited(packages)
    }
}

fn limited(packages: Vec<String>) -> Result<Packages, String> {
    match packages.len() > MAX {
        true => Err(format!("it names more than {MAX} packages")),
        false => Ok(Packages(packages)),
    }
}

fn short(text: &str) -> String {
    match text.chars().nth(60) {
        Some(_) => format!("{}…", text.chars().take(60).collect::<String>()),
        None => text.replace('\0', "?"),
    }
}

/// A line without what stands behind a `#` that begins it or follows a space.
fn uncommented(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// A name with extras, versions and a marker, written out plainly; or why it is something else.
fn requirement(line: &str) -> Result<String, &'static str> {
    if line.len() > MAX_LINE {
        return Err("it is too long");
    }
    if line.starts_with('-') {
        return Err(
            "options are not taken; put an index into your own pip.conf or into a variable such as PIP_INDEX_URL",
        );
    }
    let (named, marker) = match line.split_once(';') {
        Some((named, marker)) => (named.trim(), Some(marker.trim())),
        None => (line, None),
    };
    if named.contains('@') || named.contains("://") {
        return Err("URLs, paths and repositories are not taken, only names in the index");
    }
    if named.contains('/') || named.starts_with('.') {
        return Err("paths are not taken, only names in the index");
    }
    let name_end = named
        .find(|c: char| !is_name_part(c))
        .unwrap_or(named.len());
    let (name, rest) = named.split_at(name_end);
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !edge(name.chars().next()) || !edge(name.chars().last()) {
        return Err("it is not the name of a package");
    }
    let rest = rest.trim_start();
    let (extras, rest) = match rest.strip_prefix('[') {
        Some(inside) => inside.split_once(']').ok_or("`]` is missing")?,
        None => ("", rest),
    };
    let extras: Vec<&str> = extras.split(',').map(str::trim).collect();
    let plain = |extra: &&str| !extra.is_empty();
    let extras: Vec<&str> = extras.into_iter().filter(plain).collect();
    if !extras.iter().all(|extra| extra.chars().all(is_name_part)) {
        return Err("an extra has characters that no name has");
    }
    let versions = rest.trim();
    let versions = match versions.strip_prefix('(') {
        Some(inside) => inside.strip_suffix(')').ok_or("`)` is missing")?,
        None => versions,
    };
    let mut written = name.to_owned();
    if !extras.is_empty() {
        written.push_str(&format!("[{}]", extras.join(",")));
    }
    if !versions.trim().is_empty() {
        let parts: Result<Vec<String>, _> = versions.split(',').map(version).collect();
        written.push_str(&parts?.join(","));
    }
    if let Some(marker) = marker {
        let fits = |c: char| c.is_ascii_alphanumeric() || " _.'\"()<>=!~,+-*".contains(c);
        if marker.is_empty() || !marker.chars().all(fits) {
            return Err("what comes after `;` is not a marker");
        }
        written.push_str(&format!("; {marker}"));
    }
    Ok(written)
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// One comparison with a version.
fn version(part: &str) -> Result<String, &'static str> {
    let part = part.trim();
    let signs = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];
    let wrong = "its versions are not written as `name>=1.0,<2`";
    let sign = signs.iter().find(|sign| part.starts_with(**sign));
    let sign = sign.ok_or(wrong)?;
    let number = part[sign.len()..].trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || ".*+!_-".contains(c);
    match !number.is_empty() && !number.starts_with('-') && number.chars().all(fits) {
        true => Ok(format!("{sign}{number}")),
        false => Err(wrong),
    }
}

fn is_node_name(name: &str) -> bool {
    let part = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
        !part.is_empty() && !part.starts_with(['.', '-', '_']) && part.chars().all(fits)
    };
    let whole = match name.strip_prefix('@') {
        Some(scoped) => {
            let parts = scoped.split_once('/');
            parts.is_some_and(|(scope, name)| part(scope) && part(name))
        }
        None => part(name),
    };
    whole && name.len() <= 214
}

/// A range of versions or a tag; `npm:name@range` is one of another package.
fn is_node_range(range: &str) -> bool {
    let (range, alias) = match range.strip_prefix("npm:") {
        Some(target) => {
            let at = target.char_indices().skip(1).find(|(_, c)| *c == '@');
            match at {
                Some((at, _)) => (&target[at + 1..], Some(&target[..at])),
                None => ("", Some(target)),
            }
        }
        None => (range, None),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || " .*^~<>=|+-_".contains(c);
    alias.is_none_or(is_node_name)
        && range.len() <= MAX_LINE
        && !range.starts_with(['.', '-'])
        && !range.starts_with("~/")
        && range.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_versions_extras_and_markers_are_taken() {
        let list = "requests\n# a comment\n\nNumPy >=1.20, <2  # why\nhttpx[http2, socks]==0.27.*\n\
                    tomli>=2; python_version < '3.11'\npkg (~=1.4)\nx===1.0+local.1\n";
        let packages = Packages::python(list).unwrap();
        let all: Vec<&str> = packages.iter().collect();
        assert_eq!(
            all,
            [
                "requests",
                "NumPy>=1.20,<2",
                "httpx[http2,socks]==0.27.*",
                "tomli>=2; python_version < '3.11'",
                "pkg~=1.4",
                "x===1.0+local.1",
            ]
        );
    }

    #[test]
    fn whatever_else_an_installer_would_do_is_refused_with_its_line() {
        for line in [
            "--index-url https://evil.example/simple",
            "--extra-index-url=https://evil.example",
            "-i https://evil.example",
            "-r other.txt",
            "-e .",
            "-f /tmp",
            "--find-links /tmp",
            "--no-binary :all:",
            "--config-settings x=y",
            "requests --hash=sha256:00",
            "requests \\",
            ".",
            "./package",
            "/tmp/evil.whl",
            "../evil",
            "evil/package",
            "package.tar.gz/",
            "https://evil.example/a.whl",
            "git+https://evil.example/a",
            "evil @ https://evil.example/a.whl",
            "evil@file:///tmp/a",
            "evil; python_version < '3' @ file:///tmp",
            "evil; $(touch x)",
            "evil[",
            "evil[a/b]",
            "evil==",
            "evil==1;",
            "evil 1.0",
            "-evil",
            "evil-",
            "évil",
            "a\u{0}b",
        ] {
            let list = format!("good\n{line}\n");
            let why = Packages::python(&list).unwrap_err();
            assert!(why.starts_with("line 2 is `"), "{line}: {why}");
        }
        assert!(Packages::python(&"a\n".repeat(MAX + 1)).is_err());
        assert!(Packages::python(&"a".repeat(MAX_LINE + 1)).is_err());
    }

    #[test]
    fn packages_of_the_registry_are_taken_and_nothing_else() {
        let read = |range: &str| {
            let value = json!({"name": range});
            Packages::node(value.as_object().unwrap())
        };
        for range in [
            "1.2.3",
            "^1.2",
            "~1",
            ">=1 <2 || 3.x",
            "*",
            "latest",
            "next-1",
            "",
            "1.0.0-beta.1+x",
            "npm:other@^2",
            "npm:@scope/other@1",
            "npm:other",
        ] {
            assert!(read(range).is_ok(), "{range}");
        }
        for range in [
            "git+https://evil.example/a",
            "git@evil.example:a",
            "github:user/repo",
            "user/repo",
            "https://evil.example/a.tgz",
            "http://evil.example/a.tgz",
            "file:../evil",
            "link:../evil",
            "workspace:*",
            "../evil",
            "./evil",
            "~/evil",
            "/evil",
            "evil.tgz/",
            "npm:../evil@1",
            "npm:git+ssh://evil@1",
            "$(x)",
        ] {
            assert!(read(range).is_err(), "{range}");
        }
        for name in ["../evil", "a/b", "@a", "@/b", ".a", "a b", "-a", "@a/b/c"] {
            let value = json!({name: "1"});
            let read = Packages::node(value.as_object().unwrap());
            assert!(read.is_err(), "{name}");
        }
        let value = json!({"a": 1});
        assert!(Packages::node(value.as_object().unwrap()).is_err());
    }
}
