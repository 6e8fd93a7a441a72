//! A tool that may reach one host, and tries to reach others.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;
use tokio::sync::mpsc;
use toolcrib_sandbox::{Network, Policy};

use crate::arena::*;

const HOSTS: &str = include_str!("attack_hosts.py");

/// Serves forever: one place that leads to what is forbidden, and one word.
fn serve(forbidden: Option<u16>, word: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4_096];
            let read = stream.read(&mut head).unwrap_or(0);
            let redirect = forbidden.filter(|_| head[..read].starts_with(b"GET /redirect"));
            let answer = match redirect {
                Some(port) => format!(
                    "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n"
                ),
                None => format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{word}",
                    word.len()
                ),
            };
            // Whoever asked may have gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[tokio::test]
async fn one_host_is_reached_and_no_other() {
    for (rung, launcher) in launchers().await {
        let mut arena = Arena::new();
        // Nobody may reach this one; whoever does is told so.
        let forbidden = serve(None, "forbidden fruit");
        let served = serve(Some(forbidden), "granted");
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        arena.more = json!({"served": served, "tcp": forbidden, "name": name.trim()});
        let rules = [format!("127.0.0.1:{served}"), name.trim().to_owned()];
        let rules = rules.iter().filter_map(|rule| rule.parse().ok()).collect();
        let policy = Policy {
            network: Network::Hosts(rules),
            ..arena.policy()
        };
        let text = format!("{GUARD}{ATTACK}{HOSTS}");
        let (denied, mut heard) = mpsc::channel(64);
        let command = arena
            .command(Language::Python, &text, rung, policy)
            .tell_denied(denied);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (exit, said, err) = finish(child).await;
        let lines = read(&said);
        assert_eq!(
            exit,
            toolcrib_sandbox::Exit::Code(0),
            "{rung:?} {said}{err}"
        );
        assert!(lines.len() >= 30, "{rung:?} {said}");
        assert_eq!(out(&lines), [] as [String; 0], "{rung:?}");
        let mut told = Vec::new();
        while let Ok(denial) = heard.try_recv() {
            told.push((denial.host, denial.port));
        }
        assert!(
            told.contains(&("127.0.0.1".to_owned(), forbidden)),
            "{rung:?} {told:?}"
        );
        assert!(
            told.contains(&("169.254.169.254".to_owned(), 443)),
            "{rung:?} {told:?}"
        );
    }
}

#[tokio::test]
async fn programs_that_know_proxies_just_work() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let served = serve(None, "granted");
        let rules = vec![format!("localhost:{served}").parse().unwrap()];
        let policy = Policy {
            network: Network::Hosts(rules),
            ..arena.policy()
        };
        let command = toolcrib_sandbox::Command::new("curl", arena.at("project"), policy.clone())
            .args(["-sS", "--max-time", "10"])
            .args([
                format!("http://localhost:{served}/"),
                "-p".to_owned(),
                format!("http://localhost:{served}/x"),
            ]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, said, err) = finish(child).await;
        assert_eq!(said, "grantedgranted", "{rung:?} {err}");

        let script = format!(
            "require('http').get({{host: '127.0.0.1', port: new URL(process.env.HTTP_PROXY).port, \
             path: 'http://localhost:{served}/'}}, (r) => r.on('data', (d) => console.log(String(d))))"
        );
        let command = toolcrib_sandbox::Command::new("node", arena.at("project"), policy)
            .args(["-e", &script]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, said, err) = finish(child).await;
        assert_eq!(said, "granted\n", "{rung:?} {err}");
    }
}

/// Serves one word over TLS with a certificate made for it; gives the port.
fn serve_tls(folder: &std::path::Path) -> (std::process::Child, u16) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a server of the test's own, outside"
    )]
    let command = |program: &str| std::process::Command::new(program);
    let made = command("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");
    let script = "import http.server, ssl, sys\n\
        server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
        context.load_cert_chain('cert.pem', 'key.pem')\n\
        server.socket = context.wrap_socket(server.socket, server_side=True)\n\
        print(server.server_port, flush=True)\n\
        server.serve_forever()\n";
    let mut server = command("python3")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = server.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let port = line.trim().parse().expect("the server says its port");
    (server, port)
}

#[tokio::test]
async fn tls_goes_through_the_proxy() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let folder = arena.at("tools");
        std::fs::write(folder.join("word.txt"), "granted").unwrap();
        let (mut server, port) = serve_tls(&folder);
        let rules = vec![format!("localhost:{port}").parse().unwrap()];
        let policy = Policy {
            network: Network::Hosts(rules),
            ..arena.policy()
        };
        let script = format!(
            "import ssl, urllib.request\n\
             context = ssl.create_default_context(cafile='{}/cert.pem')\n\
             print(urllib.request.urlopen('https://localhost:{port}/word.txt', context=context).read().decode())\n",
            folder.display()
        );
        let command = toolcrib_sandbox::Command::new("python3", arena.at("project"), policy)
            .args(["-c", &script]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, said, err) = finish(child).await;
        let _ = server.kill();
        let _ = server.wait();
        assert_eq!(said, "granted\n", "{rung:?} {err}");
    }
}
