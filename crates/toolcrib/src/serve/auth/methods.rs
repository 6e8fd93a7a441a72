//! What MCP's methods need, where they come over HTTP.

use axum::http::Method;
use axum::response::Response;
use serde_json::Value;
use toolcrib_core::CallError;

use super::{Scope, Who, refuse};

/// The scope that a method needs; none for what only keeps a connection alive.
fn needed(method: &str) -> Option<Scope> {
    match method {
        "tools/call" => Some(Scope::Call),
        "ping" => None,
        other if other.starts_with("notifications/") => None,
        _ => Some(Scope::Read),
    }
}

impl Who {
    /// Refuses who lacks the scope that a method needs.
    pub fn may_use(&self, method: &str) -> Result<(), CallError> {
        needed(method).map_or(Ok(()), |scope| self.needs(scope))
    }

    /// Why a request to `/mcp` is refused before anybody reads its headers, or nothing.
    pub fn refuse_connection(&self, method: &Method) -> Option<Response> {
        // A stream tells of changes. Ending a session needs its id, and nothing else.
        match *method {
            Method::GET | Method::HEAD => self.refuse_without(Scope::Read),
            _ => None,
        }
    }

    /// Why the messages in a body are refused, or nothing. Each message is looked at again by itself.
    pub fn refuse_messages(&self, body: &[u8]) -> Option<Response> {
        if self.may(Scope::Read) && self.may(Scope::Call) {
            return None;
        }
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return self.refuse_without(Scope::Read);
        };
        let messages = match &body {
            Value::Array(messages) => messages.as_slice(),
            one => std::slice::from_ref(one),
        };
        let methods = messages.iter().filter_map(|message| message.get("method"));
        let mut scopes = methods.filter_map(|method| needed(method.as_str().unwrap_or_default()));
        scopes.find_map(|scope| self.refuse_without(scope))
    }

    fn refuse_without(&self, scope: Scope) -> Option<Response> {
        let error = self.needs(scope).err()?;
        Some(refuse(error, Some(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scopes;
    use super::*;

    #[test]
    fn each_method_needs_its_scope() {
        let who = |scope| Who::token("id", "name", None, Scopes::of([scope]));
        let refused = |who: &Who, body: &str| who.refuse_messages(body.as_bytes()).is_some();
        let (reader, caller) = (who(Scope::Read), who(Scope::Call));
        for (body, read, call) in [
            (r#"{"method": "initialize", "id": 1}"#, true, false),
            (r#"{"method": "tools/list", "id": 1}"#, true, false),
            (r#"{"method": "subscriptions/listen"}"#, true, false),
            (r#"{"method": "tools/call", "id": 1}"#, false, true),
            (
                r#"[{"method": "ping"}, {"method": "tools/call"}]"#,
                false,
                true,
            ),
            (r#"{"method": "notifications/initialized"}"#, true, true),
            (r#"{"id": 1, "result": {}}"#, true, true),
            (r#"{"method": 1}"#, true, false),
            ("nonsense", true, false),
        ] {
            assert_eq!(refused(&reader, body), !read, "{body}");
            assert_eq!(refused(&caller, body), !call, "{body}");
            assert!(!refused(&Who::owner(), body), "{body}");
        }
        assert!(reader.may_use("tools/list").is_ok() && reader.may_use("ping").is_ok());
        assert!(reader.may_use("tools/call").is_err() && caller.may_use("tools/list").is_err());
        assert!(Who::owner().may_use("tools/call").is_ok());
        assert!(caller.refuse_connection(&Method::GET).is_some());
        assert!(reader.refuse_connection(&Method::GET).is_none());
    }
}
