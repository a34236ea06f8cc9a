//! TLS of a connection, with the words of libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.
//!
//! | sslmode | TLS | certificate |
//! |---|---|---|
//! | disable | never | |
//! | allow | if the server refuses without | not judged |
//! | prefer | if the server has it | not judged |
//! | require | always | signed by a root, if there is a file of roots |
//! | verify-ca | always | signed by a root |
//! | verify-full | always | signed by a root, and the host is among its alternative names |
//!
//! A certificate that is itself in the file of roots is taken as signed, also if it calls itself an
//! authority, as those of `openssl req -x509` do.
//!
//! Rejected: OpenSSL, which would not be part of one static program.
//!
//! Limits: a host that is only in the certificate's common name does not count. No lists of revoked
//! certificates, no keys with a password.

use plumb_host::regular::read_regular;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Most bytes of a file of certificates or of a key.
const FILE_MOST: u64 = 16 << 20;
/// Name of PostgreSQL's protocol in TLS.
const PROTOCOL: &[u8] = b"postgresql";
/// Files of the machine's roots, for `sslrootcert=system`.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];
/// Word of `sslrootcert` for them.
pub(crate) const SYSTEM: &str = "system";
/// Reason for a certificate that calls itself an authority.
const OF_AUTHORITY: &str = "CaUsedAsEndEntity";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

pub(crate) const MODES: [(&str, TlsMode); 6] = [
    ("disable", TlsMode::Disable),
    ("allow", TlsMode::Allow),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

/// One way to begin, in the order in which `sslmode` tries them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    /// TLS, or a plain connection if the server has none.
    TlsIfOffered,
    Tls,
}

/// A file that an address names, or the one that libpq takes without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TlsFile {
    Named(PathBuf),
    /// File in the home directory, which may be missing.
    Usual(PathBuf),
}

impl TlsFile {
    fn path(&self) -> Option<&Path> {
        match self {
            TlsFile::Named(path) => Some(path),
            TlsFile::Usual(path) => path.exists().then_some(path),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TlsTerms {
    pub mode: TlsMode,
    /// Name by which the certificate is judged.
    pub host: String,
    pub roots: TlsFile,
    pub certificate: TlsFile,
    pub key: TlsFile,
    /// True if TLS begins at once, without a request in the clear.
    pub is_direct: bool,
    pub sends_name: bool,
}

impl TlsTerms {
    /// Returns the ways to try, in order.
    pub fn ways(&self) -> &'static [Way] {
        match self.mode {
            TlsMode::Disable => &[Way::Plain],
            TlsMode::Allow => &[Way::Plain, Way::Tls],
            TlsMode::Prefer => &[Way::TlsIfOffered, Way::Plain],
            _ => &[Way::Tls],
        }
    }

    /// Makes TLS of a connection.
    pub async fn connect(&self, stream: TcpStream, peer: IpAddr) -> io::Result<TlsStream<TcpStream>> {
        let config = self.config().map_err(io::Error::other)?;
        let name = match ServerName::try_from(self.host.clone()) {
            Ok(name) => name,
            Err(_) if self.mode == TlsMode::VerifyFull => {
                return Err(io::Error::other(format!("{} is no name of a certificate", self.host)));
            }
            Err(_) => ServerName::IpAddress(peer.into()),
        };
        let made = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        made.map_err(|error| {
            let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<Error>());
            let cure = reason.map_or("", cure);
            io::Error::other(format!("TLS failed: {error}{cure}"))
        })
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let roots = match (self.mode, self.roots.path()) {
            (TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
            (_, Some(path)) => Some(certificates(path)?),
            (_, None) => {
                let (TlsFile::Named(path) | TlsFile::Usual(path)) = &self.roots;
                return Err(format!(
                    "there is no file of roots {}, which sslmode needs; sslrootcert names one, sslrootcert={SYSTEM} takes \
                     the machine's",
                    path.display()
                ));
            }
        };
        let judge =
            Judge { roots: roots.map(Roots::of), judges_name: self.mode == TlsMode::VerifyFull, provider };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(judge));
        let mut config = match self.certificate.path() {
            Some(path) => {
                let made = builder.with_client_auth_cert(certificates(path)?, self.own_key()?);
                made.map_err(|error| format!("{} and its key: {error}", path.display()))?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.enable_sni = self.sends_name;
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    fn own_key(&self) -> Result<PrivateKeyDer<'static>, String> {
        let (TlsFile::Named(path) | TlsFile::Usual(path)) = &self.key;
        let shown = path.display();
        let bytes = read(path)?;
        let found = path.metadata().map_err(|error| format!("{shown}: {error}"))?;
        let allowed = if found.uid() == 0 { 0o640 } else { 0o600 };
        if found.mode() & 0o777 & !allowed != 0 {
            let mode = found.mode() & 0o777;
            return Err(format!("{shown} has the mode {mode:04o}, expected 0600; `chmod 600 {shown}`"));
        }
        let why = "is no private key that can be read; one with a password is not supported";
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| format!("{shown} {why}"))
    }
}

/// Returns the advice for an error of TLS.
fn cure(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; sslrootcert names the file with the root that signed the server's certificate"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; name the host as the certificate's alternative names have it",
        _ => "",
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, FILE_MOST).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Returns the certificates of a file, one at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let system = || SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = if path == Path::new(SYSTEM) { system().unwrap_or(path) } else { path };
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{} has no certificate, expected PEM", path.display()));
    }
    Ok(found)
}

/// Certificates that are trusted, also as they were read.
#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Roots {
    fn of(certificates: Vec<CertificateDer<'static>>) -> Roots {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        Roots { store, certificates }
    }
}

/// Judge of a server's certificate.
#[derive(Debug)]
struct Judge {
    /// `None` accepts each certificate that a server shows.
    roots: Option<Roots>,
    judges_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let known = self.provider.signature_verification_algorithms.all;
        let signed =
            verify_server_cert_signed_by_trust_anchor(&certificate, &roots.store, intermediates, now, known);
        // Its dates are judged before that.
        let is_root = |error: &Error| {
            error.to_string().contains(OF_AUTHORITY)
                && roots.certificates.iter().any(|root| root.as_ref() == end_entity.as_ref())
        };
        match signed {
            Err(error) if is_root(&error) => {}
            signed => signed?,
        }
        if self.judges_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the hash of a certificate for the channel binding `tls-server-end-point`: that of its
/// signature, SHA-256 for older ones. `None` for a signature without such a hash.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04];
    let (whole, _) = element(certificate)?;
    let (_, after) = element(whole)?;
    let (algorithm, _) = element(after)?;
    let (name, _) = element(algorithm)?;
    let of_rsa = name.strip_prefix(RSA).map(|kind| match kind {
        [4 | 5 | 11] => 256,
        [12] => 384,
        [13] => 512,
        _ => 0,
    });
    let of_ecdsa = || {
        name.strip_prefix(ECDSA).map(|kind| match kind {
            [1] | [3, 2] => 256,
            [3, 3] => 384,
            [3, 4] => 512,
            _ => 0,
        })
    };
    match of_rsa.or_else(of_ecdsa)? {
        256 => Some(Sha256::digest(certificate).to_vec()),
        384 => Some(Sha384::digest(certificate).to_vec()),
        512 => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Divides bytes in DER into the content of the first element and the rest.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = (*bytes.get(1)?, bytes.get(2..)?);
    let (length, rest) = match first {
        ..0x80 => (usize::from(first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            let value = digits
                .iter()
                .try_fold(0usize, |value, digit| Some(value.checked_mul(256)? + usize::from(*digit)));
            (value?, rest)
        }
    };
    rest.split_at_checked(length)
}
