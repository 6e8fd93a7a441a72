//! `web-search`: asks the search engine that settings name.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hidden, Outcome, Run, Tool};
use url::{Host, Url};

use super::visit::{self, Allowed, Answer, Request, visit};
use super::{Builtin, Effects, Switch, number, text};
use crate::Place;
use crate::outbound::{Lookup, shown_host, system_lookup};
use crate::remotes::{Provider, Remotes, WebSearch};

const DEFAULT_LIMIT: u64 = 5;
const MAX_LIMIT: u64 = 20;
const LONGEST_QUERY: usize = 400;
/// The largest answer, and what is shown of each part of a result.
const MAX_BODY: usize = 4 * 1_000 * 1_000;
const LONGEST_PART: usize = 500;

/// How a search engine is asked, and how it answers.
struct Api {
    /// Where it is, unless settings say; none where there are many.
    url: Option<&'static str>,
    needs_key: bool,
    request: fn(&Query, &mut Url) -> Option<Value>,
    /// The header that takes the key, and what stands before it.
    key: (HeaderName, &'static str),
    /// Where the results are, and what their text is called.
    results: (&'static str, &'static str),
}

/// THE TABLE of search engines.
fn api(provider: Provider) -> Api {
    match provider {
        Provider::Searxng => Api {
            url: None,
            needs_key: false,
            request: |query, url| {
                add_path(url, "search");
                url.query_pairs_mut()
                    .append_pair("q", &query.with_site())
                    .append_pair("format", "json");
                None
            },
            key: (AUTHORIZATION, "Bearer "),
            results: ("/results", "content"),
        },
        Provider::Brave => Api {
            url: Some("https://api.search.brave.com/"),
            needs_key: true,
            request: |query, url| {
                add_path(url, "res/v1/web/search");
                url.query_pairs_mut()
                    .append_pair("q", &query.with_site())
                    .append_pair("count", &query.limit.to_string());
                None
            },
            key: (HeaderName::from_static("x-subscription-token"), ""),
            results: ("/web/results", "description"),
        },
        Provider::Tavily => Api {
            url: Some("https://api.tavily.com/"),
            needs_key: true,
            request: |query, url| {
                add_path(url, "search");
                let mut body = json!({"query": query.text, "max_results": query.limit});
                if let Some(site) = &query.site {
                    body["include_domains"] = json!([site]);
                }
                Some(body)
            },
            key: (AUTHORIZATION, "Bearer "),
            results: ("/results", "content"),
        },
    }
}

struct Query {
    text: String,
    limit: u64,
    site: Option<String>,
}

impl Query {
    fn with_site(&self) -> String {
        match &self.site {
            Some(site) => format!("site:{site} {}", self.text),
            None => self.text.clone(),
        }
    }
}

struct WebSearchTool {
    place: Arc<Place>,
    lookup: Lookup,
    settings: Option<WebSearch>,
    hidden: Hidden,
}

pub(super) fn tool(place: &Arc<Place>, remotes: &Remotes) -> Builtin {
    Builtin {
        name: "web-search",
        title: "Web search",
        description: "Search the web; gives titles, addresses and a few words of each result.",
        parameters: json!({
            "query": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY, "description": "What to look for."},
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "How many results to give at most.",
            },
            "site": {"type": "string", "maxLength": 253, "description": "Only results of this host, such as docs.rs."},
        }),
        required: &["query"],
        effects: Effects::LooksElsewhere,
        switch: Switch::Set(usable(remotes.web_search.as_ref())),
        run: Arc::new(WebSearchTool {
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            settings: remotes.web_search.clone(),
            hidden: Hidden::default(),
        }),
    }
}

/// Do settings say enough? Else, what they lack.
fn usable(settings: Option<&WebSearch>) -> Result<(), CallError> {
    let lacks = |what: &str, hint: &str| {
        Err(CallError::unavailable(format!("`web-search` is off: {what}")).hint(hint))
    };
    let Some(settings) = settings else {
        return lacks(
            "no setting names a search engine",
            "write `[web_search]` with `provider = \"searxng\"` and `url`, or `provider = \"brave\"` or `\"tavily\"` and `key = \"secret://NAME\"`, into your own ~/.config/toolcrib/config.toml",
        );
    };
    let api = api(settings.provider);
    if api.url.is_none() && settings.url.is_none() {
        return lacks(
            "`[web_search]` names no `url`",
            "write the address of your search engine, such as `url = \"http://localhost:8080\"`",
        );
    }
    if api.needs_key && settings.key.is_none() {
        return lacks(
            "`[web_search]` names no `key`",
            "write `key = \"secret://NAME\"`, and where that secret is stored in `[secrets.NAME]`",
        );
    }
    Ok(())
}

impl Run for WebSearchTool {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.search(call))
    }

    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        Some(self.hidden.clone())
    }
}

impl WebSearchTool {
    async fn search(&self, call: &Call) -> CallResult {
        usable(self.settings.as_ref())?;
        let Some(settings) = &self.settings else {
            return Err(CallError::unavailable("no setting names a search engine"));
        };
        let api = api(settings.provider);
        let query = Query {
            text: text(call, "query").unwrap_or_default().to_owned(),
            limit: number(call, "limit")
                .unwrap_or(DEFAULT_LIMIT)
                .clamp(1, MAX_LIMIT),
            site: text(call, "site")
                .filter(|site| !site.is_empty())
                .map(site)
                .transpose()?,
        };
        let own = api.url.and_then(|url| Url::parse(url).ok());
        let Some(mut url) = settings.url.clone().or(own) else {
            return Err(CallError::unavailable("the search engine has no address"));
        };
        let body = (api.request)(&query, &mut url);
        let mut headers =
            HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        if let Some(secret) = &settings.key {
            let read = self.place.safe.read(secret).await;
            let key = read.map_err(|unread| unread.into_call_error("web-search"))?;
            self.hidden.add([key.as_str()]);
            let (name, before) = api.key;
            headers.insert(
                name,
                visit::secret_header(&format!("{before}{}", key.trim()))?,
            );
        }
        let request = Request {
            method: match &body {
                Some(_) => Method::POST,
                None => Method::GET,
            },
            headers,
            body: body.as_ref(),
        };
        let answer = visit(&self.place, &self.lookup, &Allowed::Named, url, &request).await?;
        let found = results(answer, api.results).await?;
        let shown: Vec<Hit> = found.into_iter().take(query.limit as usize).collect();
        let lines = shown.iter().enumerate().map(|(at, hit)| hit.line(at + 1));
        let output = match shown.is_empty() {
            true => format!("No result for \"{}\"", query.text),
            false => lines.collect::<Vec<_>>().join("\n\n"),
        };
        Ok(Outcome::text(output)
            .title(format!("Search: {}", query.text))
            .meta("query", query.text)
            .meta("count", shown.len()))
    }
}

/// A host's name alone: nothing that would say more to the api.
fn site(text: &str) -> Result<String, CallError> {
    let name = match Host::parse(text.trim().trim_end_matches('.')) {
        Ok(Host::Domain(name)) if !name.contains(['/', '%', '*']) && name.contains('.') => {
            Some(name)
        }
        _ => None,
    };
    name.ok_or_else(|| {
        CallError::invalid("`site` is not a host")
            .hint("write it without scheme and path, such as docs.rs")
    })
}

/// Puts a path behind the one that the settings name.
fn add_path(url: &mut Url, path: &str) {
    let before = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{before}/{path}"));
}

struct Hit {
    title: String,
    url: String,
    text: String,
}

impl Hit {
    fn line(&self, number: usize) -> String {
        let Hit { title, url, text } = self;
        match text.is_empty() {
            true => format!("{number}. {title}\n   {url}"),
            false => format!("{number}. {title}\n   {url}\n   {text}"),
        }
    }
}

async fn results(answer: Answer, (path, of_text): (&str, &str)) -> Result<Vec<Hit>, CallError> {
    let Answer { url, response } = answer;
    let (host, status) = (shown_host(&url), response.status());
    let (bytes, cut) = visit::body(response, MAX_BODY).await?;
    if !status.is_success() {
        let hint = match status.as_u16() {
            401 | 403 => "check the key and, with SearXNG, that it allows the format `json`",
            429 => "too many searches: wait a moment, then search again",
            _ => "check `[web_search]` in your settings",
        };
        return Err(CallError::unavailable(format!(
            "`{host}` answered with status {}",
            status.as_u16()
        ))
        .hint(hint));
    }
    let parsed: Option<Value> = serde_json::from_slice(&bytes).ok().filter(|_| !cut);
    let list = parsed.as_ref().and_then(|value| value.pointer(path));
    // An engine that finds nothing may leave the whole part out.
    let list = match (&parsed, list) {
        (Some(Value::Object(_)), None) => &[],
        (_, Some(Value::Array(list))) => list.as_slice(),
        _ => {
            return Err(
                CallError::unavailable(format!("`{host}` gave no list of results"))
                    .hint("check that `url` leads to a search engine of that provider"),
            );
        }
    };
    let part = |hit: &Value, name: &str| {
        hit.get(name)
            .and_then(Value::as_str)
            .map(plain)
            .unwrap_or_default()
    };
    let hits = list.iter().map(|hit| Hit {
        title: part(hit, "title"),
        url: part(hit, "url"),
        text: part(hit, of_text),
    });
    Ok(hits.filter(|hit| !hit.url.is_empty()).collect())
}

/// One line of plain text: engines mark what they found in bold.
fn plain(text: &str) -> String {
    let (mut line, mut tag) = (String::new(), false);
    for c in text.chars().take(10 * LONGEST_PART) {
        match c {
            '<' => tag = true,
            '>' if tag => tag = false,
            _ if tag => {}
            c if c.is_whitespace() || c.is_control() => {
                if !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            c => line.push(c),
        }
    }
    let entities = [
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
    ];
    let line = entities
        .iter()
        .fold(line.trim().to_owned(), |line, (from, to)| {
            line.replace(from, to)
        });
    match line.char_indices().nth(LONGEST_PART) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
