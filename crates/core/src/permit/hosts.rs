//! Which host pattern gives which: `host`, `host:port`, `*.suffix`, `*.suffix:port`.

/// A pattern in its parts.
struct Pattern {
    /// In small letters, without the dot that a full name may end in.
    host: String,
    port: Option<String>,
    /// Every host below this one, and not itself.
    below: bool,
}

fn parse(text: &str) -> Pattern {
    let text = text.trim().to_ascii_lowercase();
    let (below, rest) = match text.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    // An address of the sixth version stands in brackets, for it has colons of its own.
    let end = rest.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match rest[end..].find(':') {
        Some(at) => (&rest[..end + at], Some(rest[end + at + 1..].to_owned())),
        None => (rest, None),
    };
    Pattern {
        host: host.trim_end_matches('.').to_owned(),
        port,
        below,
    }
}

/// Does the right to call `given` give the right to call `wanted`?
pub fn gives(given: &str, wanted: &str) -> bool {
    let (given, wanted) = (parse(given), parse(wanted));
    if given.port.is_some() && given.port != wanted.port {
        return false;
    }
    if given.host == wanted.host {
        return given.below == wanted.below;
    }
    let front = wanted.host.strip_suffix(&given.host);
    given.below && front.is_some_and(|front| front.len() > 1 && front.ends_with('.'))
}

pub fn any_gives(given: &[String], wanted: &str) -> bool {
    given.iter().any(|one| gives(one, wanted))
}

/// The patterns, each once and in one spelling, without those that another one gives.
pub fn tidy(list: &[String]) -> Vec<String> {
    let spelled = list.iter().map(|text| {
        let Pattern { host, port, below } = parse(text);
        let front = if below { "*." } else { "" };
        let end = port.map(|port| format!(":{port}"));
        format!("{front}{host}{}", end.unwrap_or_default())
    });
    let all = super::sorted(spelled.collect());
    let needless = |host: &&String| all.iter().any(|other| other != *host && gives(other, host));
    all.iter().filter(|host| !needless(host)).cloned().collect()
}
