//! The proxy with real connections, on loopback only.

use super::*;

async fn server() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap_or(0) > 0
            {
            }
            let body = String::from_utf8_lossy(&head).into_owned();
            let text = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    (address, task)
}

/// A proxy with these rules; gives where it listens and what it denied.
async fn proxy(rules: &[&str], guests: Option<Guests>) -> (SocketAddr, mpsc::Receiver<Denial>) {
    reaching(Addresses::Granted, rules, guests).await
}

async fn reaching(
    addresses: Addresses,
    rules: &[&str],
    guests: Option<Guests>,
) -> (SocketAddr, mpsc::Receiver<Denial>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (denied, heard) = mpsc::channel(8);
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let proxy = Proxy {
        rules,
        addresses,
        denied: Some(denied),
        guests,
    };
    tokio::spawn(proxy.serve(listener));
    (address, heard)
}

async fn ask(proxy: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is cut off is an answer too.
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn granted_hosts_are_reached_both_ways() {
    let (server, _task) = server().await;
    let rule = format!("127.0.0.1:{}", server.port());
    let (proxy, mut heard) = proxy(&[&rule], None).await;
    let plain = ask(
        proxy,
        &format!("GET http://{server}/x HTTP/1.1\r\nHost: {server}\r\n\r\n"),
    )
    .await;
    assert!(
        plain.contains("GET /x HTTP/1.1") && plain.contains(&format!("Host: {server}")),
        "{plain}"
    );
    let tunnel = format!("CONNECT {server} HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
    let tunnelled = ask(proxy, &tunnel).await;
    assert!(
        tunnelled.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"),
        "{tunnelled}"
    );
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn other_hosts_ports_and_disguises_are_denied_and_told() {
    let (server, _task) = server().await;
    let port = server.port();
    // The name leads to loopback, which only `localhost` may, and only by name.
    let (proxy, mut heard) = proxy(&["localhost:1", "ip6-localhost:1", "example.com"], None).await;
    for target in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "2130706433:443".to_owned(),
        "0x7f000001:443".to_owned(),
        "example.com:22".to_owned(),
        "example.com.evil.example:443".to_owned(),
        "169.254.169.254:443".to_owned(),
    ] {
        let answer = ask(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
        let denial = heard.recv().await.unwrap();
        assert!(target.contains(&denial.host), "{target} {denial:?}");
    }
    let answer = ask(proxy, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn some_addresses_are_reached_by_nobody() {
    let rules = ["168.63.129.16:80", "169.254.169.254:80", "metadata:80"];
    let (proxy, _heard) = proxy(&rules, None).await;
    for host in ["168.63.129.16", "169.254.169.254", "metadata"] {
        let answer = ask(proxy, &format!("GET http://{host}/ HTTP/1.1\r\n\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("metadata and credentials"),
            "{host}: {answer}"
        );
    }
}

#[tokio::test]
async fn nothing_behind_a_request_is_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let rule = format!("127.0.0.1:{}", server.port());
    let (proxy, _heard) = proxy(&[&rule], None).await;
    for (fields, body) in [
        ("", ""),
        ("Content-Length: 5\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let request = format!(
            "POST http://{server}/x HTTP/1.1\r\n{fields}\r\n{body}GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        );
        let asking = tokio::spawn(async move { ask(proxy, &request).await });
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        let end = format!("\r\n\r\n{body}");
        while !got.ends_with(end.as_bytes()) {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0);
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\ndone")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        assert!(asking.await.unwrap().ends_with("done"));
        // Closed by now, so this is all that ever came.
        let _ = stream.read_to_end(&mut got).await;
        let got = String::from_utf8(got).unwrap();
        assert!(got.ends_with(&end) && !got.contains("evil"), "{got}");
    }
}

#[tokio::test]
async fn a_name_that_leads_home_is_denied() {
    // Any name of this machine that its hosts file leads to loopback, but `localhost`.
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let name = hosts
        .lines()
        .filter(|line| line.starts_with("127.") || line.starts_with("::1"))
        .flat_map(|line| line.split_whitespace().skip(1))
        .find(|name| *name != "localhost" && name.parse::<HostRule>().is_ok());
    let name = name.expect("/etc/hosts has a name beside `localhost` for this machine");
    let (proxy, mut heard) = proxy(&[name], None).await;
    let answer = ask(proxy, &format!("CONNECT {name}:443 HTTP/1.1\r\n\r\n")).await;
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("not public"),
        "{answer}"
    );
    assert!(heard.recv().await.unwrap().reason.contains("not public"));
}

#[tokio::test]
async fn an_index_may_lie_at_home_but_not_at_the_links_own_addresses() {
    let (server, _task) = server().await;
    let rules = [
        format!("localhost:{}", server.port()),
        "169.254.169.254".to_owned(),
    ];
    let rules = rules.each_ref().map(String::as_str);
    let (proxy, mut heard) = reaching(Addresses::All, &rules, None).await;
    let port = server.port();
    let answer = ask(
        proxy,
        &format!("GET http://localhost:{port}/x HTTP/1.1\r\n\r\n"),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Only the host that was named, at the port that was named.
    for target in [
        format!("127.0.0.1:{port}"),
        "localhost:1".to_owned(),
        "169.254.169.254:443".to_owned(),
    ] {
        let answer = ask(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
        assert!(heard.recv().await.is_some());
    }
}

#[tokio::test]
async fn strangers_are_not_served() {
    let (server, _task) = server().await;
    let rule = format!("127.0.0.1:{}", server.port());
    let guests = Guests::default();
    let (proxy, _heard) = proxy(&[&rule], Some(guests.clone())).await;
    let request = format!("GET http://{server}/ HTTP/1.1\r\n\r\n");
    assert_eq!(ask(proxy, &request).await, "");
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    guests.lock().unwrap().insert(socket.local_addr().unwrap());
    let mut stream = socket.connect(proxy).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn where_a_crib_listens_no_grant_leads() {
    let (server, _task) = server().await;
    let port = server.port();
    let rules = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let (proxy, mut heard) = proxy(&[&rules[0], &rules[1]], None).await;
    let tunnel =
        |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    let dir = tempfile::tempdir().unwrap();
    off_limits::look_in(vec![dir.path().to_path_buf()]);
    let notice = off_limits::announce(dir.path(), server).unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let answer = ask(proxy, &tunnel(host)).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
        assert!(heard.recv().await.unwrap().reason.contains("Toolcrib"));
    }
    drop(notice);
    let answer = ask(proxy, &tunnel("127.0.0.1")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
