//! By what calls are counted: the keys of the counters of a token, an agent, a thread.

use std::sync::Arc;

use crate::{Call, Caller, CallerLimits, Limits};

/// What records call the limits of settings.
pub(super) const LIMITS: &str = "limits";

/// The longest name of a thread that is told from others; clients choose them.
const LONGEST: usize = 256;
const TOKEN: &str = "token ";
const AGENT: &str = "agent ";
const THREAD: &str = "thread ";

/// The counters of this caller, each with its limits.
pub(super) fn of(
    limits: &Limits,
    caller: &Caller,
) -> impl Iterator<Item = (Arc<str>, CallerLimits)> {
    // A token that takes the place of another goes on with its counter, so its name decides.
    let token = caller.token_name.as_ref().or(caller.token.as_ref());
    let token = token.map(|name| (key(TOKEN, name), limits.of_token(name)));
    let agent = (key(AGENT, &caller.agent), limits.of_agent(&caller.agent));
    let limited = |(_, limits): &(Arc<str>, CallerLimits)| *limits != CallerLimits::default();
    token.into_iter().chain([agent]).filter(limited)
}

/// The counter of the thread that a call belongs to: as its client says, else whoever calls. Threads of two agents, or
/// of two tokens, are never the same.
pub(super) fn thread(call: &Call) -> Arc<str> {
    let caller = &call.caller;
    let token = caller.token.as_deref().unwrap_or_default();
    let thread = call.context.thread.as_ref();
    let thread = thread.or(caller.token.as_ref()).unwrap_or(&caller.client);
    let name = format!("{}\u{1f}{token}\u{1f}{}", caller.agent, bounded(thread));
    key(THREAD, &name)
}

pub(super) fn is_thread(key: &str) -> bool {
    key.starts_with(THREAD)
}

/// Whose counter it is, in words.
pub(super) fn in_words(key: &str) -> String {
    match (key.strip_prefix(TOKEN), key.strip_prefix(AGENT)) {
        (Some(name), _) => format!("the token `{name}`"),
        (_, Some(name)) => format!("the agent `{name}`"),
        _ => "this thread".to_owned(),
    }
}

fn bounded(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST)]
}

/// No store takes a NUL.
fn key(kind: &str, name: &str) -> Arc<str> {
    format!("{kind}{name}").replace('\0', "\u{fffd}").into()
}
