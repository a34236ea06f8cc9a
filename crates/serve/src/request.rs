//! Checks of a request before anything is read on its behalf.
//!
//! A page of another site can send requests to this machine. With a name of its own that resolves
//! to 127.0.0.1 (DNS rebinding) it could read the answers, so `Host` must be a loopback address or
//! `localhost`. `Origin`, if a browser sends it, must be the same one.

use crate::answer::HttpRefusal;
use axum::http::header::{CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, Uri};
use std::net::IpAddr;

/// Checks the head of a request. Fails if it comes from elsewhere, or a body follows.
pub fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let host = one(headers, HOST)?.ok_or_else(|| HttpRefusal::new(400, "the request has no Host"))?;
    let named = uri.authority().map(|authority| authority.as_str());
    if !is_loopback(host) || named.is_some_and(|named| !is_loopback(named)) {
        return Err(HttpRefusal::new(
            403,
            "Host is none of this machine's own: expected 127.0.0.1, [::1] or localhost",
        ));
    }
    let origin = one(headers, ORIGIN)?;
    if origin.is_some_and(|origin| !origin.eq_ignore_ascii_case(&format!("http://{host}"))) {
        return Err(HttpRefusal::new(403, "Origin is another site's"));
    }
    let is_empty = one(headers, CONTENT_LENGTH)?.is_none_or(|length| length.trim() == "0");
    match is_empty && !headers.contains_key(TRANSFER_ENCODING) {
        true => Ok(()),
        false => Err(HttpRefusal::new(413, "the request has a body, and no route takes one")),
    }
}

/// Returns the only header of a name. Fails if there are two, which programs read differently.
fn one(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, HttpRefusal> {
    let mut all = headers.get_all(&name).iter();
    let refused = |why: &str| HttpRefusal::new(400, format!("the header {name} {why}"));
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refused("is no text")),
        (Some(_), Some(_)) => Err(refused("is given twice")),
    }
}

/// True if an authority, `NAME[:PORT]`, is this machine by its own name.
fn is_loopback(authority: &str) -> bool {
    let name = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) if port.is_empty() || is_port(port) => name,
        Some(_) => return false,
        None => match authority.split_once(':') {
            Some((name, port)) if is_port(&format!(":{port}")) => name,
            Some(_) => return false,
            None => authority,
        },
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
}

#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses a query. Fails on a name that the route does not take, or one that is given twice.
    pub fn parse(query: &str, takes: &[&str]) -> Result<Fields, HttpRefusal> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text| decoded(text).ok_or_else(|| HttpRefusal::new(400, "the query is no UTF-8"));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !takes.contains(&name.as_str()) {
                let known = if takes.is_empty() { "none".to_string() } else { takes.join(", ") };
                return Err(HttpRefusal::new(400, format!("the route takes no {name:?}, it takes {known}")));
            }
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(HttpRefusal::new(400, format!("{name} is given twice")));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }

    /// Returns a value; empty if it is not given.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    /// Returns a value. Fails if it is not given.
    pub fn require(&self, name: &str) -> Result<&str, HttpRefusal> {
        let value = self.get(name);
        let missing = || HttpRefusal::new(400, format!("?{name}= is missing"));
        (!value.is_empty()).then_some(value).ok_or_else(missing)
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = (*first == b'%').then(|| std::str::from_utf8(behind.get(..2)?).ok()).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Encodes a text as a part of an address.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        for host in
            ["127.0.0.1", "127.0.0.1:80", "127.9.9.9:1", "localhost", "LOCALHOST:8080", "[::1]", "[::1]:80"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "[::1].evil",
            "10.0.0.1",
            "0.0.0.0",
            "127.0.0.1@evil.example",
            "localhost:80@evil",
            "[::1",
            "::1:80",
            "127.1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_head_is_checked() {
        let status = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().expect("a value"));
            }
            check(&Uri::from_static("/bundles"), &headers).map_or_else(|refusal| refusal.status, |()| 200)
        };
        assert_eq!(status(&[("host", "localhost:1")]), 200);
        assert_eq!(status(&[("host", "localhost:1"), ("origin", "http://localhost:1")]), 200);
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")]), 400);
        for origin in ["null", "http://evil.example", "https://localhost:1", "http://localhost:2"] {
            assert_eq!(status(&[("host", "localhost:1"), ("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(status(&[("host", "localhost"), ("content-length", "1")]), 413);
        assert_eq!(status(&[("host", "localhost"), ("transfer-encoding", "chunked")]), 413);
        let absolute = Uri::from_static("http://evil.example/bundles");
        let mut headers = HeaderMap::new();
        headers.append("host", "localhost".parse().expect("a value"));
        assert_eq!(check(&absolute, &headers).expect_err("refused").status, 403);
    }

    #[test]
    fn queries_are_decoded_once_and_unknown_names_are_refused() {
        let fields = Fields::parse("a=x%2Fy+z&b=%252e", &["a", "b"]).expect("fields");
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("c")), ("x/y z", "%2e", ""));
        for query in ["c=1", "a=1&a=2", "a=%FF"] {
            assert_eq!(Fields::parse(query, &["a", "b"]).expect_err(query).status, 400, "{query}");
        }
        assert_eq!(Fields::parse("a=%zz%4", &["a"]).expect("fields").get("a"), "%zz%4");
        assert_eq!(
            Fields::parse(&format!("a={}", encoded("ü /&\"")), &["a"]).expect("fields").get("a"),
            "ü /&\""
        );
    }
}
