//! `send-email`: to those alone whom settings allow, and nothing in a line that belongs to another.

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::remotes::{Email, Remotes, Security};

use crate::support::World;
use crate::support::web::Mail;

fn world(port: u16, security: Security, password: bool) -> World {
    let world = World::new();
    world.secret("mail", "PASSWORD-OF-THE-TEST\n");
    world.configure(Remotes {
        email: Some(Email {
            host: "127.0.0.1".to_owned(),
            port,
            security,
            from: "me@example.com".to_owned(),
            user: None,
            password: password.then(|| "mail".to_owned()),
            allowed_recipients: vec!["*@example.com".to_owned(), "ada@example.org".to_owned()],
        }),
        ..Remotes::default()
    });
    world
}

#[tokio::test]
async fn a_mail_is_sent_to_all_of_its_recipients() {
    let mail = Mail::start("250-AUTH PLAIN LOGIN\r\n").await;
    let world = world(mail.port, Security::Open, true);
    let outcome = world
        .call("send-email", json!({
            "to": ["Ada <ada@example.org>", "b@EXAMPLE.com"], "cc": ["c@example.com"], "bcc": ["d@example.com"],
            "subject": "Grüße", "text": "one\n.\nQUIT\ntwo", "html": "<p>one</p>", "replyTo": "x@elsewhere.test",
        }))
        .await
        .unwrap();
    assert_eq!(outcome.output, "The server took the mail for 4 recipients");
    assert!(!format!("{outcome:?}").contains("PASSWORD"));
    let told = mail.told();
    let commands: Vec<&String> = told
        .iter()
        .filter(|line| line.starts_with("RCPT") || line.starts_with("MAIL"))
        .collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    assert!(
        commands[0].starts_with("MAIL FROM:<me@example.com>"),
        "{commands:?}"
    );
    for address in [
        "ada@example.org",
        "b@EXAMPLE.com",
        "c@example.com",
        "d@example.com",
    ] {
        assert!(
            commands
                .iter()
                .any(|line| line.contains(&format!("RCPT TO:<{address}>"))),
            "{address}: {commands:?}"
        );
    }
    assert!(told.iter().any(|line| line.starts_with("AUTH PLAIN ")));
    let at = |what: &str| told.iter().position(|line| line.starts_with(what)).unwrap();
    let data = &told[at("DATA")..];
    assert!(
        !data.iter().any(|line| line.contains("d@example.com")),
        "nobody sees who gets a blind copy: {data:?}"
    );
    assert!(
        data.iter().any(|line| line == ".." || line == "="),
        "{data:?}"
    );
    assert_eq!(
        told.iter().filter(|line| *line == "QUIT").count(),
        1 + data.iter().filter(|line| *line == "QUIT").count() - 1
    );
}

#[tokio::test]
async fn nothing_gets_into_a_line_that_belongs_to_another() {
    let mail = Mail::start("").await;
    let world = world(mail.port, Security::Open, false);
    let base = json!({"to": ["a@example.com"], "subject": "x", "text": "x"});
    for (field, value) in [
        ("subject", json!("x\r\nBcc: evil@evil.test")),
        ("subject", json!("x\nX-Evil: 1")),
        ("subject", json!("x\u{0}y")),
        ("to", json!(["a@example.com\r\nRCPT TO:<evil@evil.test>"])),
        ("to", json!(["a@example.com>\r\nDATA\r\n"])),
        ("to", json!(["\"a\r\nb\" <a@example.com>"])),
        ("to", json!(["a@example.com, evil@evil.test"])),
        ("to", json!(["not an address"])),
        ("to", json!([""])),
        ("to", json!([])),
        ("cc", json!(["a@example.com\n"])),
        ("replyTo", json!("a@example.com\r\nBcc: evil@evil.test")),
        ("to", json!(vec!["a@example.com"; 21])),
        ("text", json!(null)),
    ] {
        let mut call = base.clone();
        call[field] = value.clone();
        if value.is_null() {
            call.as_object_mut().unwrap().remove(field);
        }
        let error = world.call("send-email", call).await.unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::InvalidArguments,
            "{field} {value}: {error}"
        );
    }
    for to in [
        "evil@evil.test",
        "a@example.com.evil.test",
        "a@sub.example.com",
        "eve@example.org",
        "Ada <ada@example.org.evil.test>",
    ] {
        for field in ["to", "cc", "bcc"] {
            let mut call = base.clone();
            call[field] = json!([to]);
            let error = world.call("send-email", call).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Denied, "{to}: {error}");
        }
    }
    assert!(
        mail.told().is_empty(),
        "nobody was called: {:?}",
        mail.told()
    );
}

#[tokio::test]
async fn no_password_goes_out_in_the_open() {
    // A server that takes the word for TLS out of its list, as somebody on the way might.
    let mail = Mail::start("250-AUTH PLAIN\r\n").await;
    let world = world(mail.port, Security::StartTls, true);
    let call = json!({"to": ["a@example.com"], "subject": "x", "text": "x"});
    let error = world.call("send-email", call.clone()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
    assert!(
        mail.told()
            .iter()
            .all(|line| line.starts_with("EHLO") || line == "QUIT"),
        "{:?}",
        mail.told()
    );
    let off = World::new();
    let error = off.call("send-email", call).await.unwrap_err();
    assert!(
        error.code == ErrorCode::Unavailable && error.hint.unwrap().to_string().contains("[email]")
    );
}
