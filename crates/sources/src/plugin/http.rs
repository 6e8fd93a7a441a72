//! Runs an http tool: every hop's host and addresses are checked, and what was checked is what is connected to.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response};
use toolcrib_core::permit::secret_name;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hidden, Object, Permit, Spec, Tool};
use url::Url;

use super::body;
use super::endpoint::{Endpoint, add_query};
use super::headers::{Headers, for_another_server};
use super::reach::{HostPattern, Reach, same_server};
use super::send::{Destinations, method};
use crate::Place;
use crate::fields::{Fields, Report};
use crate::options::{host_patterns, undescribed};
use crate::outbound::{
    Lookup, addresses, becomes_get, client, reason, redirect, shown_host, system_lookup,
};

pub const FIELDS: [&str; 7] = [
    "type",
    "url",
    "method",
    "send",
    "headers",
    "timeout",
    "allowedHosts",
];

const MAX_REDIRECTS: usize = 5;

pub struct Http {
    endpoint: Endpoint,
    method: Method,
    send: Destinations,
    headers: Headers,
    reach: Reach,
    place: Arc<Place>,
    lookup: Lookup,
    hidden: Hidden,
}

impl Http {
    pub fn read(
        fields: &Fields,
        spec: &Spec,
        place: &Arc<Place>,
        report: &mut Report,
    ) -> Option<Http> {
        let method = method(fields, report);
        let allowed = fields.get("allowedHosts").is_some().then(|| {
            let listed = fields.texts(report, "allowedHosts");
            if listed.is_empty() && !report.failed {
                report.invalid(
                    &fields.at("allowedHosts"),
                    "is empty, so nothing could be called",
                    HostPattern::HINT,
                );
            }
            host_patterns(&listed, &fields.at("allowedHosts"), report)
        });
        // Those that can't be read were reported with the other options.
        let walls = spec
            .sandbox
            .allowed_hosts
            .iter()
            .filter_map(|text| HostPattern::parse(text).ok())
            .collect();
        let headers = match fields.object(report, "headers") {
            Some(map) => Headers::read(map, &fields.at("headers"), report),
            None => Headers::default(),
        };
        if spec.sandbox.allow_network == Some(false) {
            let hint = "remove `sandbox.allowNetwork`, or set it to true";
            report.invalid(
                &fields.at("type"),
                "is `http`, but `sandbox.allowNetwork` is false",
                hint,
            );
        }
        let field = fields.at("url");
        let text = fields.required_text(
            report,
            "url",
            "write \"url\": \"https://host/path\" or \"{{url}}/path\"",
        )?;
        let endpoint = match Endpoint::parse(text, allowed.is_some()) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                report.invalid(&field, &error.to_string(), error.hint());
                return None;
            }
        };
        undescribed(endpoint.names(), &spec.input_schema, &field, report);
        let in_url: Vec<&str> = endpoint.names().collect();
        let send = Destinations::read(fields, &method, &in_url, report);
        undescribed(send.names(), &spec.input_schema, &fields.at("send"), report);
        let reach = Reach {
            literal: endpoint.literal_host(),
            allowed,
            walls,
        };
        if endpoint
            .literal_server()
            .is_some_and(|url| !reach.permits(&url))
        {
            let hint = "add the host to `sandbox.allowedHosts`, or remove that list";
            report.invalid(
                &field,
                "names a host that `sandbox.allowedHosts` leaves out",
                hint,
            );
        }
        if reach.literal.is_none() && reach.allowed.is_none() && headers.wanted().next().is_some() {
            report.invalid(
                &fields.at("headers"),
                "takes an environment variable or a secret, but the URL lets an agent choose the host it would be sent to",
                "write the host in `url`, or list the hosts in `allowedHosts`",
            );
        }
        Some(Http {
            endpoint,
            method,
            send,
            headers,
            reach,
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            hidden: Hidden::default(),
        })
    }

    /// What it asks for beyond its declared permissions: the variables and secrets in its headers.
    pub fn asks(&self) -> Permit {
        Permit {
            env: self.headers.wanted().map(str::to_owned).collect(),
            ..Permit::default()
        }
    }

    async fn execute(&self, call: &Call) -> CallResult {
        let mut url = self.endpoint.build(&call.arguments)?;
        let values = self.values(&call.tool).await?;
        let mut headers = self.headers.filled(&values)?;
        let mut method = self.method.clone();
        let remaining = self.endpoint.remaining(&call.arguments);
        let sorted = self.send.sort(&method, remaining)?;
        add_query(&mut url, &sorted.query);
        let mut json = sorted.body;
        // What the tool's author wrote stands.
        for (name, value) in sorted.headers {
            let Some(name) = name.filter(|name| !headers.contains_key(name)) else {
                continue;
            };
            headers.insert(name, value);
        }
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&url, &method, &headers, json.as_ref()).await?;
            let Some(next) = redirect(&url, &response)? else {
                return self.outcome(call, &url, response).await;
            };
            if becomes_get(response.status(), &method) {
                method = Method::GET;
                json = None;
            }
            if !same_server(&url, &next) {
                headers = for_another_server(headers);
            }
            url = next;
        }
        Err(CallError::unavailable(format!(
            "`{}` redirected more than {MAX_REDIRECTS} times",
            shown_host(&url)
        ))
        .hint("call the address that the redirects lead to"))
    }

    /// What the headers take, as far as the tool may have it. All but what every tool knows is hidden from then on.
    async fn values<'a>(&'a self, tool: &Tool) -> Result<BTreeMap<&'a str, String>, CallError> {
        let mut values = BTreeMap::new();
        for name in self.headers.wanted() {
            if let Some(value) = self.place.environment.get(name) {
                values.extend(value.to_str().map(|value| (name, value.to_owned())));
                continue;
            }
            let value = match secret_name(name) {
                Some(secret) if self.place.lends(secret, tool) => {
                    let read = self.place.safe.read(secret).await;
                    Some(read.map_err(|unread| unread.into_call_error(tool.name()))?)
                }
                Some(_) => None,
                None => {
                    let granted = self.place.granted(&tool.permit);
                    let own = granted.into_iter().find(|(granted, _)| *granted == name);
                    own.map(|(_, value)| value.into_owned())
                }
            };
            if let Some(value) = value {
                self.hidden.add([value.as_str()]);
                values.insert(name, value);
            }
        }
        Ok(values)
    }

    /// One hop. Whatever led here, the host and its addresses are looked at again.
    async fn send(
        &self,
        url: &Url,
        method: &Method,
        headers: &HeaderMap,
        json: Option<&Object>,
    ) -> Result<Response, CallError> {
        let host = shown_host(url);
        if !self.reach.permits(url) {
            return Err(CallError::denied(format!(
                "`{host}` is not among the hosts this tool may call"
            ))
            .hint("the tool's author can add it to `allowedHosts`"));
        }
        let checked = addresses(&self.place, &self.lookup, url).await?;
        let client = client(url, checked).await?;
        let mut request = client
            .request(method.clone(), url.clone())
            .headers(headers.clone());
        if let Some(json) = json {
            request = request.json(json);
        }
        request.send().await.map_err(|error| {
            let hint = "check that the server runs and that its address is right, then call again";
            CallError::unavailable(format!("`{host}` could not be reached: {}", reason(error)))
                .hint(hint)
        })
    }

    async fn outcome(&self, call: &Call, url: &Url, response: Response) -> CallResult {
        let status = response.status();
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let mut outcome = body::read(
            response,
            content_type.as_deref(),
            self.place.outputs.as_ref(),
            &call.caller.agent,
            &self.hidden.mask(),
        )
        .await?;
        if status.as_u16() >= 400 {
            outcome.is_error = true;
        }
        if outcome.output.is_empty() && (outcome.is_error || self.method == Method::HEAD) {
            outcome.output = format!("status {status}");
        }
        let mut shown = url.clone();
        shown.set_query(None);
        let outcome = outcome
            .title(call.tool.name())
            .meta("status", status.as_u16())
            .meta("url", shown.as_str());
        Ok(match content_type {
            Some(content_type) => outcome.meta("contentType", content_type),
            None => outcome,
        })
    }
}

impl toolcrib_core::Run for Http {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }

    fn hidden(&self, tool: &Tool) -> Option<Hidden> {
        (!tool.permit.env.is_empty()).then(|| self.hidden.clone())
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
