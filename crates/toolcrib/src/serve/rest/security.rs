//! What the OpenAPI document says about tokens: how they are sent, and which scope each route needs.

use utoipa::Modify;
use utoipa::openapi::path::{Operation, PathItem, Paths};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response};

use crate::serve::auth::Scope;

const TOKEN: &str = "token";

/// How a token is sent.
pub struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut OpenApi) {
        let mut bearer = Http::new(HttpAuthScheme::Bearer);
        bearer.description = Some(
            "A token that `toolcrib token create` printed. Browsers send a cookie instead, see `/login`."
                .to_owned(),
        );
        document
            .components
            .get_or_insert_default()
            .add_security_scheme(TOKEN, SecurityScheme::Http(bearer));
    }
}

/// Writes down that these routes need a scope, and how they refuse who lacks it.
pub fn describe(paths: &mut Paths, scope: Scope) {
    for operation in paths.paths.values_mut().flat_map(operations) {
        let needed = SecurityRequirement::new(TOKEN, [scope.as_str()]);
        operation.security = Some(vec![needed]);
        let responses = &mut operation.responses.responses;
        let unknown = error("`unauthorized`: no token, or one that is not valid".to_owned());
        responses
            .entry("401".to_owned())
            .or_insert(RefOr::T(unknown));
        let lacking = format!(
            "`forbidden`: the token does not have the scope `{}`",
            scope.as_str()
        );
        match responses.get_mut("403") {
            Some(RefOr::T(response)) => {
                response.description = format!("{}; {lacking}", response.description);
            }
            _ => {
                responses.insert("403".to_owned(), RefOr::T(error(lacking)));
            }
        }
        // The store, which knows the tokens, may be out of reach.
        responses.entry("503".to_owned()).or_insert_with(|| {
            RefOr::T(error("`unavailable`: tokens can't be checked".to_owned()))
        });
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn error(description: String) -> Response {
    let mut response = Response::new(description);
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("ErrorView"))));
    response
        .content
        .insert("application/json".to_owned(), RefOr::T(content));
    response
}
