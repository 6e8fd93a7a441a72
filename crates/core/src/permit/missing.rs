//! What is not granted, as a person reads it and as a command says it.

use super::{Network, Permit, limits, secret_name};
use crate::words::{flag, inline};

/// What a tool asks for and hasn't been granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub Box<Permit>);

impl Missing {
    /// Each need in words, with the flag that would help.
    pub fn needs(&self) -> Vec<String> {
        let each = words(&self.0).into_iter().zip(flags(&self.0));
        each.map(|(words, flag)| format!("{words} (`{flag}`)"))
            .collect()
    }
}

/// Each thing that a permit gives, with the flag that says it.
fn spelled(permit: &Permit) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let place = |path: &str| match path {
        "." => "the project".to_owned(),
        path => inline(path),
    };
    for path in &permit.read {
        let words = format!("to read {}", place(path));
        all.push((words, flag("--read", path)));
    }
    for path in &permit.write {
        let words = format!("to write {}", place(path));
        all.push((words, flag("--write", path)));
    }
    match &permit.network {
        Network::None => {}
        Network::Open => all.push((
            "to use the machine's own network, loopback included".to_owned(),
            "--net".to_owned(),
        )),
        Network::Hosts(hosts) => all.extend(
            hosts
                .iter()
                .map(|host| (format!("to call {}", inline(host)), flag("--net", host))),
        ),
    }
    if permit.exec {
        all.push(("to run further programs".to_owned(), "--exec".to_owned()));
    }
    if permit.install {
        all.push(("to install packages".to_owned(), "--install".to_owned()));
    }
    if let Some(mb) = permit.memory_mb {
        let words = format!("to use {mb} MB of memory");
        all.push((words, format!("--memory {mb}")));
    }
    if let Some(percent) = permit.cpu_percent {
        let words = format!("to use {}", limits::processors(percent));
        all.push((words, format!("--cpu {percent}")));
    }
    all.extend(permit.env.iter().map(|name| {
        let words = match secret_name(name) {
            Some(secret) => format!("to be given the secret {}", inline(secret)),
            None => format!("to read the environment variable {}", inline(name)),
        };
        (words, flag("--env", name))
    }));
    all
}

pub fn words(permit: &Permit) -> Vec<String> {
    spelled(permit)
        .into_iter()
        .map(|(words, _)| words)
        .collect()
}

pub fn flags(permit: &Permit) -> Vec<String> {
    spelled(permit).into_iter().map(|(_, flag)| flag).collect()
}
