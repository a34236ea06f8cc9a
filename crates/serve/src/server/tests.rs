//! The limits of the server, by a client that breaks them.

use super::*;
use plumb_study::bundle::listing::REPORTS_BELOW;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream as Client;
use std::path::Path;

const PROGRAM: Program = Program { kinds: &[], leftovers: &[], journals: Vec::new, version: "0" };

/// Serves a directory until the tests end; returns the address.
fn served(directory: &Path) -> SocketAddr {
    let server =
        BundleServer::listen("127.0.0.1:0", vec![directory.to_path_buf()], PROGRAM).expect("it listens");
    let address = server.address();
    std::thread::spawn(|| server.run());
    address
}

/// Sends bytes; returns all that is answered.
fn sent(address: SocketAddr, bytes: &[u8]) -> String {
    let mut client = Client::connect(address).expect("a connection");
    // A server that refuses may close before everything is sent.
    let _ = client.write_all(bytes);
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn got(address: SocketAddr, path: &str) -> String {
    sent(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// Makes a bundle of a run whose record and report have this text.
fn bundle(directory: &Path, name: &str, text: &str) {
    let bundle = directory.join(REPORTS_BELOW).join(name);
    fs::create_dir_all(&bundle).expect("a directory");
    fs::write(bundle.join("record.json"), "{}").expect("a record");
    fs::write(bundle.join("report.txt"), format!("REPORT\nRun: {text}\n\n")).expect("a report");
    fs::write(bundle.join("report.html"), "<script>stored()</script>").expect("a page");
}

#[test]
fn only_loopback_is_listened_on() {
    for given in ["0.0.0.0:0", "10.0.0.1:80", "[::]:0", "192.168.1.1:1"] {
        let error = BundleServer::listen(given, vec![".".into()], PROGRAM).err().expect("refused");
        assert!(matches!(error, ServeError::NotLoopback { .. }), "{error}");
    }
    for given in ["localhost:80", "127.0.0.1", "", "1"] {
        let error = BundleServer::listen(given, vec![".".into()], PROGRAM).err().expect("refused");
        assert!(matches!(error, ServeError::Address { .. }), "{error}");
    }
    let error = BundleServer::listen("127.0.0.1:0", vec!["missing".into()], PROGRAM).err().expect("refused");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn requests_from_elsewhere_and_with_bodies_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let address = served(directory.path());
    assert_eq!(status(&got(address, "/settings")), "200");
    let ask = |rest: &str| sent(address, format!("GET /settings HTTP/1.1\r\n{rest}\r\n").as_bytes());
    assert_eq!(status(&ask("Host: rebound.example\r\n")), "403");
    assert_eq!(status(&ask("Host: localhost\r\nOrigin: http://evil.example\r\n")), "403");
    assert_eq!(status(&ask("Host: localhost\r\nContent-Length: 3\r\n\r\nabc")), "413");
    assert_eq!(status(&ask("")), "400");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer =
            sent(address, format!("{method} /bundles HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        assert_eq!(status(&answer), "405", "{method}");
    }
    // The checks come before the route, and hold for one that is unknown.
    assert_eq!(status(&sent(address, b"GET /no HTTP/1.1\r\nHost: evil.example\r\n\r\n")), "403");
    assert_eq!(status(&got(address, "/no")), "404");
}

#[test]
fn heads_are_bounded_and_a_slow_client_loses_its_connection() {
    let directory = tempfile::tempdir().expect("a directory");
    let address = served(directory.path());
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(HEAD_BYTES_MOST));
    assert!(matches!(status(&sent(address, long.as_bytes())), "414" | "431" | ""));
    let many = "X: 1\r\n".repeat(HEADERS_MOST + 1);
    let many = format!("GET /settings HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    assert!(matches!(status(&sent(address, many.as_bytes())), "431" | ""));
    // More clients than connections, none of which ends its head: each is closed by the server,
    // and then the next one is served.
    let slow: Vec<Client> = (0..CONNECTIONS_MOST)
        .map(|_| {
            let mut client = Client::connect(address).expect("a connection");
            client.write_all(b"GET /settings HT").expect("it is sent");
            client
        })
        .collect();
    assert_eq!(status(&got(address, "/settings")), "200");
    for mut client in slow {
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert_ne!(status(&String::from_utf8_lossy(&answer)), "200");
    }
}

#[test]
fn no_name_leads_out_of_the_directory_and_no_link_is_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let inside = directory.path().join("inside");
    bundle(&inside, "fine", "VALID");
    bundle(directory.path(), "secret", "SECRET");
    let secret = directory.path().join(REPORTS_BELOW).join("secret");
    std::os::unix::fs::symlink(&secret, inside.join(REPORTS_BELOW).join("link")).expect("a link");
    bundle(&inside, "holds", "VALID");
    let record = inside.join(REPORTS_BELOW).join("holds/record.json");
    fs::remove_file(&record).expect("removed");
    std::os::unix::fs::symlink(secret.join("record.json"), &record).expect("a link");
    let address = served(&inside);
    for id in [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2fplumb-reports%2fsecret",
        "%2e%2e%2f%2e%2e%2fplumb-reports%2fsecret",
        "..%5csecret",
        "fine%2f..%2f..",
        "%00",
        "link",
        "2!fine",
        "0!fine",
        "1!fine",
    ] {
        for route in ["record", "analysis", "report"] {
            let answer = got(address, &format!("/bundles/{id}/{route}"));
            assert!(matches!(status(&answer), "404" | "400"), "{id}: {answer}");
        }
        let answer = got(address, &format!("/compare?a={id}&b=fine"));
        assert!(matches!(status(&answer), "404" | "400"), "{id}: {answer}");
    }
    let answer = got(address, "/bundles/holds/record");
    assert!(status(&answer) == "403" && answer.contains("is a link"), "{answer}");
    let list = got(address, "/bundles");
    assert!(list.contains("fine") && !list.contains("SECRET") && !list.contains("/link"), "{list}");
}

#[test]
fn hostile_bundles_are_escaped_and_pages_run_no_script_of_theirs() {
    let directory = tempfile::tempdir().expect("a directory");
    let hostile = "<script>x()</script>\"'><img src=x onerror=x()>";
    bundle(directory.path(), "<script>alert(1)</script>", hostile);
    bundle(directory.path(), "b\" onmouseover=\"x()", hostile);
    let address = served(directory.path());
    let page = got(address, "/?q=script&a=%3Cscript%3E&kind=%22%3E%3Cb%3E");
    let page = page + &got(address, "/");
    for breach in ["<script", "<img", "\" onmouseover", "<b>"] {
        assert!(!page.contains(breach), "{breach}: {page}");
    }
    assert!(page.contains("&lt;script&gt;"), "{page}");
    // A refused page repeats what was asked.
    let page = got(address, "/bundles/%3Cscript%3Ex()%3C%2Fscript%3E/report");
    assert!(status(&page) == "404" && !page.contains("<script"), "{page}");
    let report = got(address, "/pages/health");
    let policy = report.lines().find(|line| line.starts_with("content-security-policy")).expect("a policy");
    let scripts =
        policy.split("script-src ").nth(1).and_then(|rest| rest.split(';').next()).expect("scripts");
    assert!(!scripts.contains("unsafe") && scripts.matches("sha256-").count() == 3, "{policy}");
    for path in ["/", "/bundles", "/style.css", "/no"] {
        let answer = got(address, path);
        let policy =
            answer.lines().find(|line| line.starts_with("content-security-policy")).expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{path}: {policy}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
    }
}

#[test]
fn hashes_are_those_of_other_programs() {
    // printf abc | openssl dgst -sha256 -binary | base64
    assert_eq!(hash("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

#[test]
fn nothing_arriving_is_a_state_of_its_own_and_metrics_are_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let address = served(directory.path());
    let health = got(address, "/health");
    assert!(health.contains("\"NOTHING ARRIVING\"") && health.contains("there is no bundle"), "{health}");
    let metrics = got(address, "/metrics");
    assert!(metrics.contains("\nplumb_arriving 0\n") && metrics.ends_with("# EOF\n"), "{metrics}");
    // A gap is no zero.
    assert!(!metrics.contains("\nplumb_newest_bundle_timestamp_seconds "), "{metrics}");
    bundle(directory.path(), "new", "VALID, DISTURBED (others used the device)");
    let (health, metrics) = (got(address, "/health"), got(address, "/metrics"));
    assert!(health.contains("\"ARRIVING\"") && health.contains("\"DISTURBED\""), "{health}");
    assert!(metrics.contains("plumb_bundles{kind=\"run\",state=\"ended\"} 1\n"), "{metrics}");
    assert!(
        metrics.contains("\nplumb_arriving 1\n") && metrics.contains("\nplumb_disturbed_bundles 1\n"),
        "{metrics}"
    );
}
