//! The stream beneath the client: a socket, TLS on it, and a reader of message heads.
//!
//! ```text
//! socket ──> [ SSLRequest, S or N ] ──> TLS ──> heads ──> tokio-postgres
//! ```
//!
//! The library answers each request for a password on its own, and has no hook. So the head of each
//! message is read before the library has its bytes: one letter, four bytes of length, and
//! four more of a request for a password.
//!
//! - A password goes to a server in clear text or as MD5 only if the connection is encrypted or
//!   local, or `require_auth` asks for it.
//! - The messages of a start have at most [`START_MOST`] bytes, those of a statement
//!   [`STATEMENT_MOST`]. A longer one is refused by its head, before memory is taken.
//! - A statement has at most [`ANSWERS_MOST`] answers: the library looks types up that it does
//!   not know, and a server could invent one after the other.
//!
//! The library takes this stream for one with TLS of its own making, because it asks no other kind
//! for the channel binding of SCRAM.
//!
//! Rejected: authentication of our own, which would be a second client.
//!
//! Limits: no GSSAPI, neither for authentication nor for encryption.

use crate::error::ClientError;
use crate::tls::{self, TlsTerms, Way};
use plumb_events::locked;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// Most bytes of a start.
const START_MOST: u64 = 1 << 20;
/// Most bytes of a statement's answers: a plan as JSON has megabytes at most.
pub const STATEMENT_MOST: u64 = 64 << 20;
/// Most bytes of an error, a notice or a parameter.
const MESSAGE_MOST: u64 = 1 << 20;
/// Most answers of a statement: to prepare it, to execute it, and to look up its types.
const ANSWERS_MOST: u32 = 200;
/// Request for TLS: its length, and the number of the request.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Bytes of a head: a letter and the length, which counts itself.
const HEAD: usize = 5;

/// Ways to prove who a user is, with the words of `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    None,
    Password,
    Md5,
    Gss,
    Sspi,
    Scram,
}

pub(crate) const METHODS: [(&str, Method); 6] = [
    ("none", Method::None),
    ("password", Method::Password),
    ("md5", Method::Md5),
    ("gss", Method::Gss),
    ("sspi", Method::Sspi),
    ("scram-sha-256", Method::Scram),
];

/// Methods that a server may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuthTerms {
    /// Methods of `require_auth`; `None` without one.
    pub allowed: Option<Vec<Method>>,
    /// True if `require_auth` names the methods, false if it excludes others.
    pub is_named: bool,
}

impl AuthTerms {
    /// Returns the reason why a method is refused.
    fn refusal(&self, method: Method, is_safe: bool) -> Option<String> {
        let name = METHODS.iter().find(|(_, known)| *known == method).map_or("", |(name, _)| name);
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&method)) {
            return Some(format!(
                "the server asks for the authentication {name}, which require_auth excludes"
            ));
        }
        let is_asked_for = self.allowed.is_some() && self.is_named;
        match method {
            Method::Password | Method::Md5 if !is_safe && !is_asked_for => Some(format!(
                "the server asks for the password by {name}, and the connection is not encrypted: it was not sent; \
                 sslmode=require encrypts, require_auth={name} sends it all the same"
            )),
            _ => None,
        }
    }
}

pub(crate) type SharedHeads = Arc<Mutex<Heads>>;

/// Reader of message heads, with the sums of a statement.
#[derive(Debug)]
pub(crate) struct Heads {
    terms: AuthTerms,
    /// True if the connection is encrypted or stays on this machine.
    is_safe: bool,
    has_started: bool,
    /// True if the server has asked for a proof.
    has_asked: bool,
    head: Vec<u8>,
    /// Bytes of the present message that are still to come.
    rest: u64,
    received: u64,
    answers: u32,
}

impl Heads {
    fn new(terms: &AuthTerms, is_safe: bool) -> Heads {
        Heads {
            terms: terms.clone(),
            is_safe,
            has_started: false,
            has_asked: false,
            head: Vec::new(),
            rest: 0,
            received: 0,
            answers: 0,
        }
    }

    /// Begins the sums of a statement.
    pub fn begin_statement(&mut self) {
        (self.has_started, self.received, self.answers) = (true, 0, 0);
    }

    /// Reads bytes that came; returns the reason why they are refused.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        self.received += bytes.len() as u64;
        loop {
            let skipped = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
            bytes = &bytes[skipped..];
            self.rest -= skipped as u64;
            let Some((first, others)) = bytes.split_first() else { return Ok(()) };
            self.head.push(*first);
            bytes = others;
            if self.head.len() >= HEAD {
                self.read_head()?;
            }
        }
    }

    /// Judges a message when enough of it is there.
    fn read_head(&mut self) -> Result<(), String> {
        let length = u64::from(u32::from_be_bytes([self.head[1], self.head[2], self.head[3], self.head[4]]));
        let Some(body) = length.checked_sub(4) else {
            return Err(format!("a message has the length {length}, expected 4 or more"));
        };
        let kind = self.head[0];
        let more = if kind == b'R' { 4.min(body) } else { 0 };
        let whole = HEAD + more as usize;
        if self.head.len() < whole {
            return Ok(());
        }
        let most = match (self.has_started, kind) {
            (false, _) => START_MOST,
            (true, b'E' | b'N' | b'S' | b'A') => MESSAGE_MOST,
            (true, _) => STATEMENT_MOST,
        };
        let all = if self.has_started { STATEMENT_MOST } else { START_MOST };
        if body > most || self.received > all {
            let (found, most) = (body.max(self.received), if body > most { most } else { all });
            return Err(format!("the server sent {found} bytes, expected {most} at most"));
        }
        let code = self.head[HEAD..whole].iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
        self.head.clear();
        self.rest = body - more;
        match kind {
            b'R' => self.authentication(code),
            b'Z' => {
                self.answers += 1;
                match self.answers > ANSWERS_MOST {
                    true => Err(format!("the server sent more than {ANSWERS_MOST} answers to a statement")),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Judges what the server asks for.
    fn authentication(&mut self, code: u32) -> Result<(), String> {
        let method = match code {
            0 if self.has_asked => return Ok(()),
            0 => Method::None,
            3 => Method::Password,
            5 => Method::Md5,
            7 => Method::Gss,
            9 => Method::Sspi,
            10 => Method::Scram,
            _ => return Ok(()),
        };
        self.has_asked = true;
        self.terms.refusal(method, self.is_safe).map_or(Ok(()), Err)
    }
}

enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// A connection to a server, with or without TLS.
pub(crate) struct Wire {
    transport: Transport,
    heads: SharedHeads,
    /// Hash of the server's certificate.
    end_point: Option<Vec<u8>>,
}

impl Wire {
    fn new(transport: Transport, is_local: bool, terms: &AuthTerms) -> Wire {
        let is_encrypted = matches!(transport, Transport::Tls(_));
        let end_point = match &transport {
            Transport::Tls(stream) => {
                let chain = stream.get_ref().1.peer_certificates();
                chain.and_then(|chain| tls::end_point(chain.first()?))
            }
            _ => None,
        };
        let heads = Heads::new(terms, is_encrypted || is_local);
        Wire { transport, heads: Arc::new(Mutex::new(heads)), end_point }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut dyn Both> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream),
            Transport::Unix(stream) => Pin::new(stream),
            Transport::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

trait Both: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Both for S {}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.as_mut().stream().poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &read {
            let judged = locked(&self.heads).read(&buffer.filled()[before..]);
            return Poll::Ready(judged.map_err(io::Error::other));
        }
        read
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}

impl TlsStream for Wire {
    fn channel_binding(&self) -> ChannelBinding {
        self.end_point.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Gives the library the stream as it is.
struct AsItIs;

impl TlsConnect<Wire> for AsItIs {
    type Stream = Wire;
    type Error = io::Error;
    type Future = Ready<Result<Wire, io::Error>>;

    fn connect(self, wire: Wire) -> Self::Future {
        ready(Ok(wire))
    }
}

pub(crate) type Connection = tokio_postgres::Connection<Wire, Wire>;

/// A started connection before its client.
pub(crate) struct Started {
    pub client: tokio_postgres::Client,
    pub connection: Connection,
    pub heads: SharedHeads,
}

/// Place at which a server listens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    Unix(&'a Path),
    Tcp { host: &'a str, port: u16 },
}

/// Terms of authentication and of TLS.
pub(crate) struct Terms<'a> {
    pub auth: &'a AuthTerms,
    /// `None` for a socket of this machine.
    pub tls: Option<&'a TlsTerms>,
}

/// Connects a session. A second way is tried if the first one ended at TLS, or at the server's
/// rules of access, which may ask for the other.
pub(crate) async fn start(
    place: Place<'_>,
    terms: Terms<'_>,
    config: &Config,
) -> Result<Started, ClientError> {
    let mut config = config.clone();
    config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let ways = terms.tls.map_or(&[Way::Plain][..], TlsTerms::ways);
    let mut last = ClientError::Ended;
    for way in ways {
        let (is_tls, begun) = match begin(place, &terms, *way).await {
            Ok(wire) => {
                let heads = Arc::clone(&wire.heads);
                let is_tls = matches!(wire.transport, Transport::Tls(_));
                let begun = config.connect_raw(wire, AsItIs).await;
                (is_tls, begun.map(|(client, connection)| Started { client, connection, heads }))
            }
            Err(Unbegun::Tls(error)) => {
                last = ClientError::Io(error);
                continue;
            }
            Err(Unbegun::Other(error)) => return Err(ClientError::Io(error)),
        };
        match begun {
            Ok(started) => return Ok(started),
            Err(error) => {
                let by_rules = error.code().is_some_and(|code| code.code() == "28000");
                let is_other = is_tls == (*way == Way::Plain);
                last = ClientError::Library(error);
                if !by_rules || is_other {
                    return Err(last);
                }
            }
        }
    }
    Err(last)
}

/// Reason why a connection has not begun.
enum Unbegun {
    Tls(io::Error),
    Other(io::Error),
}

async fn begin(place: Place<'_>, terms: &Terms<'_>, way: Way) -> Result<Wire, Unbegun> {
    let (host, port) = match place {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(Unbegun::Other)?;
            return Ok(Wire::new(Transport::Unix(stream), true, terms.auth));
        }
        Place::Tcp { host, port } => (host, port),
    };
    let (mut stream, peer) = connected(host, port).await.map_err(Unbegun::Other)?;
    let is_local = peer.to_canonical().is_loopback();
    let plain = |stream| Ok(Wire::new(Transport::Tcp(stream), is_local, terms.auth));
    let Some(tls) = terms.tls.filter(|_| way != Way::Plain) else { return plain(stream) };
    if !tls.is_direct {
        match offers(&mut stream).await.map_err(Unbegun::Other)? {
            true => {}
            false if way == Way::TlsIfOffered => return plain(stream),
            false => {
                let why = "the server has no TLS, which sslmode asks for; use a socket or a tunnel, or sslmode=prefer";
                return Err(Unbegun::Tls(io::Error::other(why)));
            }
        }
    }
    let stream = tls.connect(stream, peer).await.map_err(Unbegun::Tls)?;
    Ok(Wire::new(Transport::Tls(Box::new(stream)), is_local, terms.auth))
}

/// Asks for TLS. What a server sends behind its answer would be read as TLS, and refused.
async fn offers(stream: &mut TcpStream) -> io::Result<bool> {
    stream.write_all(&SSL_REQUEST).await?;
    match stream.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        other => Err(io::Error::other(format!("the server answered {other} to the request for TLS"))),
    }
}

/// Connects to the first address of a name that answers.
async fn connected(host: &str, port: u16) -> io::Result<(TcpStream, IpAddr)> {
    let mut last = io::Error::other(format!("the name {host} has no address"));
    let named = lookup_host((host, port)).await;
    for address in named.map_err(|error| io::Error::other(format!("the name {host}: {error}")))? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok((stream, address.ip()));
            }
            Err(error) => last = io::Error::other(format!("no connection to {address}: {error}")),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [&[kind][..], &length, body].concat()
    }

    fn heads(is_safe: bool, terms: AuthTerms) -> Heads {
        Heads::new(&terms, is_safe)
    }

    #[test]
    fn a_password_is_asked_for_in_the_clear_only_where_it_is_safe() {
        let named = |method| AuthTerms { allowed: Some(vec![method]), is_named: true };
        let without = |method: Method| {
            let others = METHODS.iter().map(|(_, known)| *known).filter(|known| *known != method);
            AuthTerms { allowed: Some(others.collect()), is_named: false }
        };
        let none = AuthTerms::default;
        // Code of the request, terms, result on a safe connection and on another.
        let cases = [
            (3, none(), [true, false]),
            (5, none(), [true, false]),
            (10, none(), [true, true]),
            (0, none(), [true, true]),
            (3, named(Method::Password), [true, true]),
            (5, named(Method::Md5), [true, true]),
            (5, named(Method::Password), [false, false]),
            (0, named(Method::Scram), [false, false]),
            (10, named(Method::Scram), [true, true]),
            (3, without(Method::Md5), [true, false]),
            (5, without(Method::Md5), [false, false]),
        ];
        for (code, terms, expected) in cases {
            let request = message(b'R', &u32::to_be_bytes(code));
            for (is_safe, is_taken) in [true, false].into_iter().zip(expected) {
                let read = heads(is_safe, terms.clone()).read(&request);
                assert_eq!(read.is_ok(), is_taken, "{code} {terms:?} {is_safe}: {read:?}");
                // The head may come in pieces.
                let mut pieces = heads(is_safe, terms.clone());
                let read = request.iter().try_for_each(|byte| pieces.read(&[*byte]));
                assert_eq!(read.is_ok(), is_taken);
            }
        }
        // The last word of SCRAM is no method of its own.
        let mut scram = heads(false, named(Method::Scram));
        for code in [10, 11, 12, 0] {
            scram.read(&message(b'R', &u32::to_be_bytes(code))).expect("scram");
        }
    }

    #[test]
    fn a_long_message_is_refused_by_its_head() {
        let head = |kind: u8, length: u32| [&[kind][..], &length.to_be_bytes()].concat();
        let read = |has_started: bool, bytes: &[u8]| {
            let mut heads = heads(true, AuthTerms::default());
            if has_started {
                heads.begin_statement();
            }
            heads.read(bytes)
        };
        assert!(read(false, &head(b'E', 1 << 30)).expect_err("long").contains("1073741820 bytes"));
        assert!(read(true, &head(b'E', 1 << 30)).is_err() && read(true, &head(b'T', u32::MAX)).is_err());
        assert!(read(true, &head(b'T', 1 << 24)).is_ok() && read(false, &head(b'S', 1 << 24)).is_err());
        for length in 0..4 {
            assert!(read(true, &head(b'Z', length)).expect_err("short").contains("expected 4 or more"));
        }
        let mut rows = heads(true, AuthTerms::default());
        rows.begin_statement();
        let row = message(b'D', &vec![0; 1 << 20]);
        let read = (0..100).try_for_each(|_| rows.read(&row));
        assert!(read.expect_err("many rows").contains("67108864 at most"));
        let mut statements = heads(true, AuthTerms::default());
        for _ in 0..10 {
            statements.begin_statement();
            (0..50).try_for_each(|_| statements.read(&row)).expect("each statement has sums of its own");
        }
    }

    #[test]
    fn answers_are_counted() {
        let mut heads = heads(true, AuthTerms::default());
        let ready = message(b'Z', b"I");
        for _ in 0..2 {
            heads.begin_statement();
            (0..ANSWERS_MOST).try_for_each(|_| heads.read(&ready)).expect("answers of one statement");
        }
        assert!(heads.read(&ready).expect_err("endless").contains("more than 200 answers"));
    }
}
