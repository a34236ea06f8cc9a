//! The server: limits of connections, heads, bodies and time; headers of every answer.
//!
//! A connection carries one request, so that its time is bounded as a whole: [`HEAD_TIME`] to the
//! end of its head, [`CONNECTION_TIME`] to the end of the answer. A client that sends or reads
//! slowly loses its connection, and at most [`CONNECTIONS_MOST`] are open. Others wait in the
//! kernel's queue.
//!
//! Rejected: connections that are kept alive. On loopback a new one costs less than a millisecond.

use crate::answer::{HttpRefusal, Site};
use crate::request::{Fields, check};
use crate::route::{Media, ROUTES, RouteRequest};
use crate::{Program, page};
use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use plumb_io::named_directory::{self, NamedDirectoryError};
use plumb_report::html;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

const CONNECTIONS_MOST: usize = 64;
/// Bytes of a request's head at most. A browser sends about 1 KiB.
const HEAD_BYTES_MOST: usize = 16 << 10;
const HEADERS_MOST: usize = 64;
const HEAD_TIME: Duration = Duration::from_secs(5);
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// Threads that read bundles and render.
const RENDERERS: usize = 2;
/// Pause after a connection could not be accepted, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("--listen {given}: expected an address with a port, as in 127.0.0.1:8080 or [::1]:0")]
    Address { given: String },
    #[error(
        "--listen {address}: the server has neither TLS nor a token yet, so it listens on loopback alone: choose \
         127.0.0.1:{} and forward it, as by ssh -L",
        address.port()
    )]
    NotLoopback { address: SocketAddr },
    #[error("--listen {address}: {source}; port 0 takes a free one")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Directory(#[from] NamedDirectoryError),
    #[error("the server cannot start: {0}")]
    Runtime(io::Error),
}

/// A server that listens and has not answered yet.
pub struct BundleServer {
    listener: TcpListener,
    address: SocketAddr,
    served: Site,
}

impl BundleServer {
    /// Listens on a loopback address, `IP:PORT`. Fails for any other one, and for a directory that
    /// is none.
    pub fn listen(
        given: &str,
        directories: Vec<PathBuf>,
        program: Program,
    ) -> Result<BundleServer, ServeError> {
        let address: SocketAddr =
            given.parse().map_err(|_| ServeError::Address { given: given.to_string() })?;
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback { address });
        }
        for directory in &directories {
            named_directory::require("DIR", directory)?;
        }
        let refused = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(BundleServer { listener, address, served: Site { program, directories } })
    }

    /// Returns the address, with the port that the kernel chose for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the process ends. Fails if the server cannot start.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(RENDERERS)
            .build()
            .map_err(ServeError::Runtime)?;
        runtime.block_on(self.answer()).map_err(ServeError::Runtime)
    }

    async fn answer(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let router = router(Arc::new(self.served));
        let open = Arc::new(Semaphore::new(CONNECTIONS_MOST));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = open.clone().acquire_owned().await else { return Ok(()) };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let router = router.clone();
                    tokio::spawn(async move {
                        connection(stream, router).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// Answers one request. What a client does wrong ends its connection and nothing else.
async fn connection(stream: TcpStream, router: Router) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MOST)
        .max_headers(HEADERS_MOST)
        .keep_alive(false);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = tokio::time::timeout(CONNECTION_TIME, serving).await;
}

fn router(served: Arc<Site>) -> Router {
    let mut router = Router::new();
    let renderers = Arc::new(Semaphore::new(RENDERERS));
    for route in ROUTES {
        let (served, renderers) = (served.clone(), renderers.clone());
        let answer = move |path: RawPathParams, request: Request| {
            let (served, renderers) = (served.clone(), renderers.clone());
            let id = path.iter().next().map_or(String::new(), |(_, value)| value.to_string());
            let query = request.uri().query().unwrap_or_default().to_string();
            async move {
                // A client that leaves while it waits here leaves no work behind.
                let permit = renderers.acquire_owned().await;
                let body = move || {
                    let _permit = permit;
                    let fields = Fields::parse(&query, route.takes)?;
                    (route.answer)(&served, &RouteRequest { id, fields })
                };
                answer(route.media, body).await
            }
        };
        router = router.route(route.path, get(answer));
    }
    let unknown =
        || async { refusal(&HttpRefusal::new(404, "there is no such route; /openapi.json lists them")) };
    router.fallback(unknown).layer(middleware::from_fn(checked))
}

async fn checked(request: Request, next: Next) -> Response {
    let mut response = match check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refusal(&refused),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

async fn answer(
    media: Media,
    body: impl FnOnce() -> Result<String, HttpRefusal> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(body).await {
        Ok(Ok(body)) => response(StatusCode::OK, media, body),
        // A person reads a page, also one of an error.
        Ok(Err(refused)) if matches!(media, Media::Page | Media::Report) => {
            let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response(status, Media::Page, page::refused(&refused.line))
        }
        Ok(Err(refused)) => refusal(&refused),
        // The message of a panic is on standard error.
        Err(_) => refusal(&HttpRefusal::new(500, "this is a bug: the answer failed")),
    }
}

fn refusal(refused: &HttpRefusal) -> Response {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(status, Media::Json, format!("{:#}\n", json!({ "error": refused.line })))
}

fn response(status: StatusCode, media: Media, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    // The policy has letters of base64 and words.
    if let Ok(policy) = HeaderValue::from_str(&policy(media)) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Returns the content-security-policy. A report may run the scripts of this program: each by its
/// hash, so that no text of a bundle is ever a script. Style attributes lay out its figures.
fn policy(media: Media) -> String {
    let allowed = match media {
        Media::Json | Media::Metrics | Media::Style => String::new(),
        Media::Page => "style-src 'self'; img-src data:; form-action 'self'; ".to_string(),
        Media::Report => {
            let scripts = html::SCRIPTS.iter().map(|script| format!("'sha256-{}'", hash(script)));
            let scripts = scripts.collect::<Vec<_>>().join(" ");
            format!("script-src {scripts}; style-src 'unsafe-inline'; img-src data:; ")
        }
    };
    let form = if media == Media::Page { "" } else { "form-action 'none'; " };
    format!("default-src 'none'; {allowed}{form}base-uri 'none'; frame-ancestors 'none'")
}

fn hash(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64 = String::new();
    for part in Sha256::digest(text.as_bytes()).chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(part.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            base64.push(if at <= part.len() { char::from(letter) } else { '=' });
        }
    }
    base64
}

#[cfg(test)]
mod tests;
