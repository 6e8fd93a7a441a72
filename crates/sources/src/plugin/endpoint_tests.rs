//! Tests of URLs with placeholders: what is built, what is refused at load, and what is refused in a call.

use serde_json::{Value, json};
use toolcrib_core::ErrorCode;

use super::*;

fn object(value: Value) -> Object {
    Object::parse(&value.to_string()).unwrap()
}

fn build(template: &str, arguments: Value) -> Result<String, CallError> {
    Endpoint::parse(template, true)
        .unwrap()
        .build(&object(arguments))
        .map(String::from)
}

#[test]
fn values_are_put_where_they_belong() {
    let table = [
        ("https://a.test", json!({}), "https://a.test/"),
        ("HTTPS://a.test/x?y=1", json!({}), "https://a.test/x?y=1"),
        (
            "{{url}}/health",
            json!({"url": "http://localhost:8080"}),
            "http://localhost:8080/health",
        ),
        (
            "{{url}}/health",
            json!({"url": "http://localhost:8080/"}),
            "http://localhost:8080/health",
        ),
        (
            "{{url}}/health",
            json!({"url": "https://a.test/api/v1/"}),
            "https://a.test/api/v1/health",
        ),
        (
            "{{url}}",
            json!({"url": "https://a.test/api/"}),
            "https://a.test/api/",
        ),
        (
            "{{url}}?q={{q}}",
            json!({"url": "https://a.test/s", "q": "a b"}),
            "https://a.test/s?q=a%20b",
        ),
        (
            "{{url}}/x",
            json!({"url": "http://[::1]:80"}),
            "http://[::1]/x",
        ),
        (
            "https://a.test/{{id}}",
            json!({"id": "a/b?c#d&e=f"}),
            "https://a.test/a%2Fb%3Fc%23d%26e%3Df",
        ),
        (
            "https://a.test/{{id}}",
            json!({"id": "%2e%2e"}),
            "https://a.test/%252e%252e",
        ),
        (
            "https://a.test/{{id}}.json",
            json!({"id": ".."}),
            "https://a.test/...json",
        ),
        (
            "https://a.test/{{id}}",
            json!({"id": "{{url}}"}),
            "https://a.test/%7B%7Burl%7D%7D",
        ),
        (
            "https://a.test/{{id}}",
            json!({"id": "-_.!~*'()ä"}),
            "https://a.test/-_.!~*'()%C3%A4",
        ),
        (
            "https://a.test/?q={{q}}&n={{n}}",
            json!({"q": "&n=9", "n": 2}),
            "https://a.test/?q=%26n%3D9&n=2",
        ),
        (
            "https://a.test/?q={{q}}",
            json!({"q": ["x"]}),
            "https://a.test/?q=%5B%22x%22%5D",
        ),
        (
            "http://localhost:{{port}}/x",
            json!({"port": 9000}),
            "http://localhost:9000/x",
        ),
        (
            "http://[::1]:{{port}}",
            json!({"port": "81"}),
            "http://[::1]:81/",
        ),
        (
            "https://{{region}}.a.test/x",
            json!({"region": "eu-1"}),
            "https://eu-1.a.test/x",
        ),
        (
            "https://a.test/x:{{y}}@z",
            json!({"y": "1"}),
            "https://a.test/x:1@z",
        ),
    ];
    for (template, arguments, expected) in table {
        assert_eq!(build(template, arguments).unwrap(), expected, "{template}");
    }
}

#[test]
fn values_that_would_lead_elsewhere_are_refused() {
    let table = [
        ("{{url}}/x", json!({"url": "ftp://a.test"})),
        ("{{url}}/x", json!({"url": "file:///etc/passwd"})),
        ("{{url}}/x", json!({"url": "a.test"})),
        ("{{url}}/x", json!({"url": "//a.test"})),
        ("{{url}}/x", json!({"url": "http:a.test"})),
        ("{{url}}/x", json!({"url": "http://"})),
        ("{{url}}/x", json!({"url": "http://user:pass@a.test"})),
        ("{{url}}/x", json!({"url": "http://@a.test"})),
        ("{{url}}/x", json!({"url": "http:///user:pass@a.test"})),
        ("{{url}}/x", json!({"url": "http://a.test?x=1"})),
        ("{{url}}/x", json!({"url": "http://a.test#x"})),
        ("{{url}}/x", json!({"url": "http://a.test/a/../b"})),
        ("{{url}}/x", json!({"url": "http://a.test/%2E%2e"})),
        ("{{url}}/x", json!({"url": "http://a.test\\@b.test"})),
        ("{{url}}/x", json!({"url": " http://a.test"})),
        ("{{url}}/x", json!({"url": "http://a\n.test"})),
        ("{{url}}/x", json!({"url": 5})),
        ("{{url}}/x", json!({})),
        ("{{url}}/x", json!({"url": null})),
        ("https://a.test/{{id}}/x", json!({"id": ".."})),
        ("https://a.test/{{id}}", json!({"id": "."})),
        ("https://a.test/.{{id}}", json!({"id": "."})),
        ("https://a.test/{{id}}", json!({"id": "a\0b"})),
        ("https://a.test/{{id}}", json!({"id": "x".repeat(10_001)})),
        ("https://{{h}}.a.test/", json!({"h": "b.test/"})),
        ("https://{{h}}.a.test/", json!({"h": "b.test#"})),
        ("https://{{h}}.a.test/", json!({"h": "u@b"})),
        ("https://{{h}}.a.test/", json!({"h": "b%2F"})),
        ("http://localhost:{{p}}/", json!({"p": "80@evil.test"})),
        ("http://localhost:{{p}}/", json!({"p": 0})),
        ("http://localhost:{{p}}/", json!({"p": 65_536})),
        ("http://localhost:{{p}}/", json!({"p": "+80"})),
    ];
    for (template, arguments) in table {
        let error = build(template, arguments.clone()).unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::InvalidArguments,
            "{template} {arguments}"
        );
        assert!(error.hint.is_some(), "{template} {arguments}");
    }
}

#[test]
fn urls_that_could_be_bent_are_refused_at_load() {
    use EndpointError as E;
    let table = [
        ("", E::Scheme),
        ("ftp://a.test", E::Scheme),
        ("a.test/x", E::Scheme),
        ("/x", E::Scheme),
        ("https://a.test/a b", E::Character),
        ("https://a.test\\x", E::Character),
        ("https://u:p@a.test/", E::Credentials),
        ("https://a.test/#x", E::Fragment),
        ("https://a.test/?a#{{x}}", E::Fragment),
        ("{{url}}.evil.test/", E::AfterBase("url".into())),
        ("{{url}}{{path}}", E::AfterBase("url".into())),
        ("{{scheme}}://a.test", E::AfterBase("scheme".into())),
        ("https://{{h}}/x", E::HostSlot("h".into())),
        ("https://a.{{h}}/x", E::HostSlot("h".into())),
        ("https://a.test{{h}}", E::HostSlot("h".into())),
        ("http://a.test:8{{p}}/", E::PortSlot("p".into())),
        ("http://a.test:{{p}}0/", E::PortSlot("p".into())),
        ("https://a.test/{{", E::Slot(BadSlot("{{".into()))),
    ];
    for (template, expected) in table {
        let error = Endpoint::parse(template, false).unwrap_err();
        assert_eq!(error, expected, "{template}");
        assert!(!error.hint().is_empty());
    }
    for template in ["https://", "https://a.test/../x", "https://a.test:99999/"] {
        assert!(
            matches!(Endpoint::parse(template, false), Err(E::Url(_))),
            "{template}"
        );
    }
}

#[test]
fn the_literal_host_is_known_unless_a_value_decides() {
    let host = |template: &str| {
        Endpoint::parse(template, true)
            .unwrap()
            .literal_host()
            .map(|host| host.to_string())
    };
    assert_eq!(
        host("https://A.test:{{p}}/{{x}}").as_deref(),
        Some("a.test")
    );
    assert_eq!(host("{{url}}/x"), None);
    assert_eq!(host("https://{{h}}.test/"), None);
}

#[test]
fn what_is_left_over_goes_into_the_query() {
    let endpoint = Endpoint::parse("https://a.test/{{id}}?k=v", false).unwrap();
    let arguments = json!({"id": 1, "q": "a&b", "tags": ["x", 2, null], "o": {"a": 1}, "none": null, "b": true});
    let arguments = object(arguments);
    let mut url = endpoint.build(&arguments).unwrap();
    add_query(&mut url, &endpoint.remaining(&arguments));
    assert_eq!(
        url.as_str(),
        "https://a.test/1?k=v&q=a%26b&tags=x&tags=2&o=%7B%22a%22%3A1%7D&b=true"
    );
    let mut plain = Url::parse("https://a.test/").unwrap();
    add_query(&mut plain, &endpoint.remaining(&object(json!({"id": 1}))));
    assert_eq!(plain.as_str(), "https://a.test/");
    let exact = r#"{"id": 123456789012345678901234567890, "n": [1.0, 18446744073709551617]}"#;
    let exact = Object::parse(exact).unwrap();
    let mut url = endpoint.build(&exact).unwrap();
    add_query(&mut url, &endpoint.remaining(&exact));
    assert_eq!(
        url.as_str(),
        "https://a.test/123456789012345678901234567890?k=v&n=1.0&n=18446744073709551617"
    );
}
