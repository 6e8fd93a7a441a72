//! Where an installer gets packages from: the hosts of its index, and what of the user's own settings it is shown.
//!
//! Only the settings of the installer in use count, and only what says where packages come from. A project's files say
//! nothing about it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolcrib_sandbox::HostRule;
use url::Url;

use crate::Place;

/// A program that installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installer {
    Pip,
    Uv,
    Npm,
    Bun,
}

/// What every installer may be told: which certificates are good.
const CERTIFICATES: [&str; 4] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];

impl Installer {
    pub fn name(self) -> &'static str {
        match self {
            Installer::Pip => "pip",
            Installer::Uv => "uv",
            Installer::Npm => "npm",
            Installer::Bun => "bun",
        }
    }

    /// The hosts that it asks where nobody says otherwise.
    fn usual_hosts(self) -> &'static [&'static str] {
        match self {
            Installer::Pip | Installer::Uv => &["pypi.org", "files.pythonhosted.org"],
            Installer::Npm | Installer::Bun => &["registry.npmjs.org"],
        }
    }

    /// The user's own settings, from the home on, and the variable that leads to them.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Installer::Pip => &[
                ("PIP_CONFIG_FILE", ".config/pip/pip.conf"),
                ("PIP_CONFIG_FILE", ".pip/pip.conf"),
            ],
            Installer::Uv => &[("UV_CONFIG_FILE", ".config/uv/uv.toml")],
            Installer::Npm | Installer::Bun => &[("NPM_CONFIG_USERCONFIG", ".npmrc")],
        }
    }

    /// Settings of the whole machine that it reads by itself.
    fn shared_settings(self) -> &'static [&'static str] {
        match self {
            Installer::Pip => &["/etc/pip.conf", "/etc/xdg/pip/pip.conf"],
            Installer::Uv => &["/etc/uv/uv.toml"],
            Installer::Npm | Installer::Bun => &["/etc/npmrc"],
        }
    }

    /// Is this variable one that says where this installer gets packages, and how it shows who asks?
    fn takes(self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        let known: &[&str] = match self {
            Installer::Pip => &[
                "PIP_INDEX_URL",
                "PIP_EXTRA_INDEX_URL",
                "PIP_FIND_LINKS",
                "PIP_NO_INDEX",
                "PIP_TRUSTED_HOST",
                "PIP_CERT",
                "PIP_CLIENT_CERT",
                "PIP_TIMEOUT",
                "PIP_DEFAULT_TIMEOUT",
                "PIP_RETRIES",
                "PIP_CONFIG_FILE",
            ],
            Installer::Uv => &[
                "UV_INDEX",
                "UV_DEFAULT_INDEX",
                "UV_INDEX_URL",
                "UV_EXTRA_INDEX_URL",
                "UV_FIND_LINKS",
                "UV_NO_INDEX",
                "UV_OFFLINE",
                "UV_INDEX_STRATEGY",
                "UV_INSECURE_HOST",
                "UV_NATIVE_TLS",
                "UV_HTTP_TIMEOUT",
                "UV_CONFIG_FILE",
            ],
            Installer::Npm => &[
                "NPM_CONFIG_REGISTRY",
                "NPM_CONFIG_CAFILE",
                "NPM_CONFIG_CA",
                "NPM_CONFIG_STRICT_SSL",
                "NPM_CONFIG_USERCONFIG",
                "NPM_CONFIG_FETCH_TIMEOUT",
                "NPM_CONFIG_FETCH_RETRIES",
            ],
            Installer::Bun => &[
                "NPM_CONFIG_REGISTRY",
                "NPM_CONFIG_USERCONFIG",
                "BUN_CONFIG_REGISTRY",
                "BUN_CONFIG_TOKEN",
            ],
        };
        let credentials = self == Installer::Uv
            && upper.starts_with("UV_INDEX_")
            && (upper.ends_with("_USERNAME") || upper.ends_with("_PASSWORD"));
        known.contains(&upper.as_str()) || credentials || CERTIFICATES.contains(&upper.as_str())
    }

    fn is_proxy(self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        let own = match self {
            Installer::Pip => "PIP_PROXY",
            Installer::Uv => "UV_PROXY",
            Installer::Npm | Installer::Bun => "NPM_CONFIG_PROXY",
        };
        [
            own,
            "NPM_CONFIG_HTTPS_PROXY",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ]
        .contains(&upper.as_str())
            && (upper.starts_with("NPM_") == own.starts_with("NPM_") || !upper.contains("CONFIG"))
    }
}

/// Where one installer gets packages from, and what it is shown for it.
#[derive(Debug, Clone, Default)]
pub struct Index {
    pub vars: Vec<(String, String)>,
    /// Settings, certificates and folders of packages that those name.
    pub read: Vec<PathBuf>,
    pub hosts: Vec<HostRule>,
    /// The variable or file that names a proxy of the user's own, which can't be used.
    pub proxy: Option<String>,
}

impl Index {
    pub fn of(installer: Installer, place: &Place) -> Index {
        let home = place.environment.get("HOME").map(Path::new);
        let given = &place.scripts.settings.installing;
        let mut index = Index::default();
        let mut hosts: BTreeSet<String> = BTreeSet::new();
        for (name, value) in given.iter().filter(|(name, _)| installer.takes(name)) {
            index.vars.push((name.clone(), value.clone()));
            hosts.extend(urls(value).filter_map(|url| host_of(&url)));
            index.read.extend(paths(value));
        }
        let proxy = given
            .iter()
            .find(|(name, value)| installer.is_proxy(name) && !value.is_empty());
        index.proxy = proxy.map(|(name, _)| format!("the variable {name}"));
        let settings = installer.settings().iter().filter_map(|(name, file)| {
            let path = home?.join(file);
            path.is_file().then_some((*name, path))
        });
        let own = settings.into_iter().next();
        let is_set = |name: &str| {
            let mut names = index.vars.iter().map(|(known, _)| known);
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        let own = own.filter(|(name, _)| !is_set(name));
        let shared = installer.shared_settings().iter().map(PathBuf::from);
        let named = given
            .iter()
            .filter(|(name, _)| installer.settings().iter().any(|(own, _)| own == name))
            .map(|(_, value)| PathBuf::from(value))
            // A relative one would be a project's.
            .filter(|file| file.is_absolute());
        let files = own
            .iter()
            .map(|(_, path)| path.clone())
            .chain(named)
            .chain(shared);
        for file in files.collect::<Vec<_>>() {
            let Ok(text) = std::fs::read_to_string(&file) else {
                continue;
            };
            // A value may go on in the next lines, which begin with spaces or have no key.
            let mut key = String::new();
            for line in text.lines() {
                if line.trim_start().starts_with(['#', ';']) {
                    continue;
                }
                if let Some((named, _)) = line.split_once('=').filter(|(named, _)| is_key(named)) {
                    named.trim().clone_into(&mut key);
                }
                if matches!(&*key, "proxy" | "https-proxy" | "http-proxy") {
                    index.proxy.get_or_insert(format!("`{}`", file.display()));
                }
                hosts.extend(urls(line).filter_map(|url| host_of(&url)));
                if names_packages_or_certificates(&key) {
                    index.read.extend(paths(line));
                }
            }
        }
        if let Some((name, path)) = own {
            index
                .vars
                .push((name.to_owned(), path.display().to_string()));
            index.read.push(path);
        }
        hosts.extend(
            installer
                .usual_hosts()
                .iter()
                .map(|host| (*host).to_owned()),
        );
        index.hosts = hosts.iter().filter_map(|host| host.parse().ok()).collect();
        index.read.sort();
        index.read.dedup();
        index
    }
}

/// Does a setting begin here? A URL may hold a sign of equality too.
fn is_key(named: &str) -> bool {
    let named = named.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "@/._:-".contains(c);
    !named.is_empty() && named.chars().all(fits) && !named.contains("://")
}

/// May what a setting of this name leads to be read? A prefix, a cache or a target may be a whole home.
fn names_packages_or_certificates(key: &str) -> bool {
    let last = key.rsplit(['.', ':']).next().unwrap_or_default();
    [
        "cafile",
        "cert",
        "certfile",
        "client-cert",
        "extra-index-url",
        "find-links",
        "index",
        "index-url",
        "default-index",
        "keyfile",
        "registry",
        "url",
    ]
    .contains(&last)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'=,[]{}".contains(c))
        .filter(|word| !word.is_empty())
}

fn urls(text: &str) -> impl Iterator<Item = Url> {
    words(text)
        .filter(|word| word.contains("://"))
        .filter_map(|word| word.parse().ok())
        .filter(|url: &Url| ["http", "https"].contains(&url.scheme()))
}

/// Absolute paths of files and folders that are there.
fn paths(text: &str) -> impl Iterator<Item = PathBuf> {
    let paths = words(text).map(|word| PathBuf::from(word.strip_prefix("file://").unwrap_or(word)));
    paths.filter(|path| path.is_absolute() && path.parent().is_some() && path.exists())
}

/// The host of a URL as a rule names it. A tunnel goes to 443 and a plain request to 80 where it names no port.
fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::place;

    fn index(installer: Installer, vars: &[(&str, &str)]) -> Index {
        let mut place = place(None);
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let inner = std::sync::Arc::get_mut(&mut place).unwrap();
        inner.scripts.settings.installing = vars.iter().map(own).collect();
        Index::of(installer, &place)
    }

    fn hosts(index: &Index) -> Vec<String> {
        index.hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_installer_sees_its_own_variables_only() {
        let vars = [
            ("PIP_INDEX_URL", "https://user:word@pip.example/simple"),
            ("UV_INDEX_URL", "https://uv.example:8443/simple"),
            ("npm_config_registry", "http://127.0.0.1:4873/"),
            ("PIP_TARGET", "/tmp"),
            ("SSL_CERT_FILE", "/etc/hosts"),
        ];
        let names = |index: &Index| -> Vec<String> {
            index.vars.iter().map(|(name, _)| name.clone()).collect()
        };
        let pip = index(Installer::Pip, &vars);
        assert_eq!(names(&pip), ["PIP_INDEX_URL", "SSL_CERT_FILE"]);
        assert!(hosts(&pip).contains(&"pip.example".to_owned()));
        assert!(!hosts(&pip).contains(&"uv.example:8443".to_owned()));
        assert!(pip.read.contains(&PathBuf::from("/etc/hosts")));
        let npm = index(Installer::Npm, &vars);
        assert_eq!(names(&npm), ["npm_config_registry", "SSL_CERT_FILE"]);
        assert!(hosts(&npm).contains(&"127.0.0.1:4873".to_owned()));
        let uv = index(Installer::Uv, &vars);
        assert!(hosts(&uv).contains(&"uv.example:8443".to_owned()));
    }

    #[test]
    fn of_the_users_settings_only_packages_and_certificates_are_opened() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let read = |installer, file: &str, text: String| {
            let file = home.path().join(file);
            std::fs::write(&file, text).unwrap();
            let name = match installer {
                Installer::Pip => "PIP_CONFIG_FILE",
                _ => "npm_config_userconfig",
            };
            let path = file.display().to_string();
            let names = [(name, path.as_str()), ("NPM_CONFIG_USERCONFIG", &path)];
            index(installer, &names)
        };
        let (links, more, target) = (at("links"), at("more"), at("target"));
        let text = format!(
            "[global]\nfind-links =\n    {}\n    {}\ntarget = {}\nindex-url = https://own.example/a?b=c\n",
            links.display(),
            more.display(),
            target.display()
        );
        let pip = read(Installer::Pip, "pip.conf", text);
        assert!(pip.read.contains(&links) && pip.read.contains(&more));
        assert!(!pip.read.contains(&target), "{:?}", pip.read);
        assert!(hosts(&pip).contains(&"own.example".to_owned()));
        let (prefix, cafile) = (at("prefix"), at("ca"));
        let text = format!(
            "prefix={}\ncafile={}\n@own:registry=https://npm.example/\n//npm.example/:_authToken=x\n",
            prefix.display(),
            cafile.display()
        );
        let npm = read(Installer::Npm, "npmrc", text);
        assert!(npm.read.contains(&cafile) && !npm.read.contains(&prefix));
        assert!(hosts(&npm).contains(&"npm.example".to_owned()));
    }

    #[test]
    fn a_proxy_of_the_users_own_is_noticed() {
        let told = |installer, name| index(installer, &[(name, "http://p.example")]).proxy;
        assert!(told(Installer::Pip, "HTTPS_PROXY").is_some());
        assert!(told(Installer::Pip, "https_proxy").is_some());
        assert!(told(Installer::Npm, "NPM_CONFIG_HTTPS_PROXY").is_some());
        assert!(told(Installer::Pip, "NPM_CONFIG_HTTPS_PROXY").is_none());
        assert!(told(Installer::Pip, "NO_PROXY").is_none());
    }
}
