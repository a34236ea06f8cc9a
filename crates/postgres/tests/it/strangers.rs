//! Servers that mean harm, or are damaged on the way: refused in a line, never a hang, never
//! gigabytes.
//!
//! `PLUMB_DAMAGED=2000` sets the number of damaged conversations; the default is a small one.

use crate::visits::Host;
use plumb_postgres::PostgresError;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::client::{BOUNDS, Bounds};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_postgres::visit::{Visit, VisitTerms};
use plumb_units::SplitMix;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Bounds in which a server on loopback answers, and a test ends.
const SHORT: Bounds = Bounds { look_up: Duration::from_millis(700), silence: Duration::from_millis(300) };

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Reads the start of a session, after a request for TLS that is denied.
fn start(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        stream.read_exact(&mut body)?;
        if body[..4] != 80_877_103u32.to_be_bytes() {
            return Ok(body);
        }
        stream.write_all(b"N")?;
    }
}

fn ready() -> Vec<u8> {
    let parameters = [("server_version", "15.1"), ("client_encoding", "UTF8")];
    let parameters = parameters.map(|(name, value)| message(b'S', format!("{name}\0{value}\0").as_bytes()));
    let key = message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]);
    [message(b'R', &[0; 4]), parameters.concat(), key, message(b'Z', b"I")].concat()
}

/// Answer to a statement with one column of this type.
fn described(kind: u32) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    let column = [&b"\0\x01a\0\0\0\0\0\0\0"[..], &kind, b"\xFF\xFF\xFF\xFF\xFF\xFF\0\0"].concat();
    [message(b'1', b""), message(b't', &[0, 0]), message(b'T', &column)].concat()
}

/// Answers `show search_path`, so that a session is plumb's own.
fn path(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked)?;
    let row = message(b'D', b"\0\x01\0\0\0\x0Apg_catalog");
    let all = [
        message(b'1', b""),
        message(b'2', b""),
        described(25)[5..].to_vec(),
        row,
        message(b'C', b"SHOW\0"),
        message(b'Z', b"I"),
    ];
    stream.write_all(&all.concat())
}

/// Starts a server whose sessions do this.
fn server(serve: fn(&mut TcpStream) -> std::io::Result<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            // The client ends the connection.
            thread::spawn(move || serve(&mut stream));
        }
    });
    port
}

fn address(port: u16, options: &str) -> ServerAddress {
    let url = format!("postgres://me:geheim@127.0.0.1:{port}/d?connect_timeout=1{options}");
    ServerAddress::parse(&url, &|_| None).unwrap_or_else(|error| panic!("{error}")).bounded(SHORT)
}

/// Waits until the client ends the connection.
fn say_nothing(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}

/// Sends a message without end.
fn repeat(stream: &mut TcpStream, message: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(message)?;
    }
}

fn visited(address: &ServerAddress) -> String {
    let error = Visit::of(address, VisitTerms::default()).err().expect("refused");
    one_line(&error)
}

fn explained(address: &ServerAddress) -> String {
    one_line(&explain(address, "select 1", &[Vec::new()], QueryRights::Read).expect_err("refused"))
}

fn one_line(error: &PostgresError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 1000 && !text.contains("geheim"), "{text}");
    text
}

type Serve = fn(&mut TcpStream) -> std::io::Result<()>;

/// Requires that each server is refused, with words of the error of a study, and of a plan.
fn require_refused(cases: &[(Serve, [&str; 2])]) {
    for (serve, [study, plan]) in cases {
        let url = address(server(*serve), "");
        // What comes without end meets its bound in bytes, on a slow machine, too.
        let address = if study.contains("bytes") { url.bounded(BOUNDS) } else { url };
        let (found, expected) = (visited(&address), study);
        assert!(found.contains(expected), "{found}: expected {expected}");
        let (found, expected) = (explained(&address), plan);
        assert!(found.contains(expected), "{found}: expected {expected}");
    }
}

#[test]
fn a_start_that_is_silent_or_too_long_is_refused() {
    require_refused(&[
        (say_nothing, ["no answer within 1s"; 2]),
        (
            |stream| stream.write_all(&[7; 1 << 16]).and_then(|()| say_nothing(stream)),
            ["answered 7 to the request for TLS"; 2],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&[b'E', 0x40, 0, 0, 0])?;
                say_nothing(stream)
            },
            ["sent 1073741820 bytes, expected 1048576 at most"; 2],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&message(b'R', &[0; 4]))?;
                repeat(stream, &message(b'S', &[&b"x\0"[..], &[b'y'; 1000], b"\0"].concat()))
            },
            ["bytes, expected 1048576 at most"; 2],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&message(b'E', b"SFATAL\0VFATAL\0C53300\0M \0\0"))?;
                say_nothing(stream)
            },
            ["error 53300 without a text"; 2],
        ),
    ]);
}

#[test]
fn an_answer_that_is_silent_or_too_long_is_refused() {
    require_refused(&[
        (
            |stream| {
                start(stream)?;
                stream.write_all(&ready())?;
                say_nothing(stream)
            },
            ["no answer within 700ms", "a second session had no answer either"],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&ready())?;
                let notice = [&b"SNOTICE\0C00000\0M"[..], &[b'x'; 100_000], b"\0\0"].concat();
                repeat(stream, &message(b'N', &notice))
            },
            ["bytes, expected 67108864 at most"; 2],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&ready())?;
                let _ = stream.read(&mut [0; 4096])?;
                stream.write_all(&[message(b'1', b""), message(b'2', b"")].concat())?;
                stream.write_all(&described(25)[5..])?;
                repeat(stream, &message(b'D', &[&[0, 1, 0, 0, 0x75, 0x30][..], &[b'x'; 30_000]].concat()))
            },
            ["bytes, expected 67108864 at most", "message"],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&ready())?;
                path(stream)?;
                // Each type that the client looks up is of another one.
                for kind in 20_000u32.. {
                    let _ = stream.read(&mut [0; 4096])?;
                    stream.write_all(&[described(kind), message(b'Z', b"I")].concat())?;
                }
                Ok(())
            },
            ["", ""],
        ),
        (
            |stream| {
                start(stream)?;
                stream.write_all(&ready())?;
                path(stream)?;
                let _ = stream.read(&mut [0; 4096])?;
                stream.write_all(&[b'T', 0xFF, 0xFF, 0xFF, 0xFB, 1, 1, 1, 1])?;
                say_nothing(stream)
            },
            ["bytes, expected 67108864 at most", ""],
        ),
    ]);
}

#[test]
fn a_row_with_fewer_columns_than_described_is_no_panic() {
    let port = server(|stream| {
        start(stream)?;
        stream.write_all(&ready())?;
        let _ = stream.read(&mut [0; 4096])?;
        let row = message(b'D', b"\0\0");
        let all = [
            message(b'1', b""),
            message(b'2', b""),
            described(25)[5..].to_vec(),
            row,
            message(b'C', b"SHOW\0"),
            message(b'Z', b"I"),
        ];
        stream.write_all(&all.concat())?;
        say_nothing(stream)
    });
    let found = visited(&address(port, ""));
    assert!(found.contains("DataRow field count does not match"), "{found}");
}

#[test]
fn a_password_is_sent_in_the_clear_only_where_it_may_be() {
    let (sent, received) = channel();
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = asks_in_the_clear(&mut stream.expect("a client"), &sent);
        }
    });
    let of = |host: &str, options: &str| {
        let url = format!("postgres://me:geheim@{host}:{port}/d?connect_timeout=5{options}");
        let address = ServerAddress::parse(&url, &|_| None).expect("an address").bounded(SHORT);
        let said = visited(&address);
        (said, received.recv().expect("a session"))
    };
    let (said, password) = of("127.0.0.1", "");
    assert!(password.contains("geheim"), "{said}");
    let (said, password) = of("127.0.0.1", "&require_auth=scram-sha-256");
    assert!(said.contains("which require_auth excludes") && password.is_empty(), "{said} {password}");
    let Some(other) = own_address() else {
        println!("skipped: this machine has no address but loopback");
        return;
    };
    let (said, password) = of(&other, "");
    assert!(
        said.contains("it was not sent; sslmode=require encrypts") && password.is_empty(),
        "{said} {password}"
    );
    let (said, password) = of(&other, "&require_auth=!md5");
    assert!(said.contains("it was not sent") && password.is_empty(), "{said} {password}");
    let (said, password) = of(&other, "&require_auth=password");
    assert!(password.contains("geheim"), "{said}");
    let (said, password) = of(&other, "&sslmode=require");
    assert!(
        said.contains("the server has no TLS, which sslmode asks for") && password.is_empty(),
        "{said} {password}"
    );
}

/// Asks for a password, and passes on what came.
fn asks_in_the_clear(stream: &mut TcpStream, sent: &Sender<String>) -> std::io::Result<()> {
    let mut bytes = vec![0; 4096];
    let mut read = 0;
    if start(stream).is_ok() {
        stream.write_all(&message(b'R', &[0, 0, 0, 3]))?;
        read = stream.read(&mut bytes).unwrap_or(0);
    }
    let _ = sent.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
    Ok(())
}

/// Returns an address of this machine that is not loopback.
fn own_address() -> Option<String> {
    // Nothing is sent.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback()).then(|| own.to_string())
}

/// Changes what a server sends in a session, piece by piece.
pub type Change = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// A relay between clients and a server, which changes what the server sends; returns its port.
pub fn relay(server: PathBuf, changes: fn(u64) -> Change) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for (number, client) in (0..).zip(listener.incoming()) {
            let (client, server) = (client.expect("a client"), server.clone());
            thread::spawn(move || relay_one(client, &server, changes(number)));
        }
    });
    port
}

fn relay_one(mut client: TcpStream, server: &Path, mut change: Change) -> std::io::Result<()> {
    let hello = start(&mut client)?;
    let mut server = UnixStream::connect(server)?;
    server.write_all(&u32::try_from(hello.len() + 4).expect("short").to_be_bytes())?;
    server.write_all(&hello)?;
    let (mut up, mut from) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut up);
        let _ = up.shutdown(std::net::Shutdown::Both);
    });
    let mut bytes = vec![0; 65536];
    loop {
        let count = server.read(&mut bytes)?;
        if count == 0 {
            return client.shutdown(std::net::Shutdown::Both);
        }
        let mut sent = bytes[..count].to_vec();
        change(&mut sent);
        client.write_all(&sent)?;
    }
}

#[test]
fn damaged_answers_are_refused_in_a_line() {
    let Some(host) = Host::start() else { return };
    let count: u64 = std::env::var("PLUMB_DAMAGED").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
    let socket = host.cluster.data().join(".s.PGSQL.5432");
    let port = relay(socket, |session| {
        let mut random = SplitMix(session);
        Box::new(move |bytes| {
            for byte in bytes.iter_mut() {
                if random.below(1000) == 0 {
                    let changed = [0, 255, *byte ^ 1, b'9', b'-', b'\'', 27, *byte ^ 128];
                    *byte = changed[random.below(8) as usize];
                }
            }
        })
    });
    let user = host.shown("select current_user::text");
    let url = format!("postgres://{user}@127.0.0.1:{port}/postgres?connect_timeout=1");
    let bounds = Bounds { look_up: Duration::from_millis(200), silence: Duration::from_millis(100) };
    let address = ServerAddress::parse(&url, &|_| None).expect("an address").bounded(bounds);
    let mut refused = 0;
    for conversation in 0..count {
        let error = match conversation % 2 {
            0 => Visit::of(&address, VisitTerms::default()).err(),
            _ => explain(&address, "select 1", &[Vec::new()], QueryRights::Read).err(),
        };
        if let Some(error) = error {
            refused += 1;
            one_line(&error);
        }
    }
    println!("{refused} of {count} refused");
    assert!(refused > count / 4, "{refused} of {count}: the damage is no damage");
}
