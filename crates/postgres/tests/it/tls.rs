//! TLS with a certificate of the test's own: each `sslmode`, roots, client certificates, binding.

use crate::server::{PLAIN, installed, place};
use plumb_events::Cancel;
use plumb_postgres::account::Account;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::cluster::Cluster;
use plumb_postgres::visit::{Visit, VisitTerms};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Rules of access: the name of a user says how it may come in.
const RULES: &str = "local all all peer\n\
                     hostssl all by_cert all cert\n\
                     hostssl all by_tls all scram-sha-256\n\
                     hostssl all by_clear_text all password\n\
                     hostnossl all by_plain all scram-sha-256\n";
/// Certificates by openssl: a root, the server's, a user's, and a root of nobody.
const CERTIFICATES: &str = "
set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'
openssl req -x509 $key -keyout root.key -out root.crt -subj /CN=root
openssl req -x509 $key -keyout other.key -out other.crt -subj /CN=root
name=subjectAltName=DNS:localhost
openssl req -x509 $key -keyout self.key -out self.crt -subj /CN=self -addext $name
echo $name > names
for name in server by_cert; do
  openssl req -new $key -keyout $name.key -out $name.csr -subj /CN=$name
  openssl x509 -req -days 2 -in $name.csr -CA root.crt -CAkey root.key -CAcreateserial \\
    -out $name.crt -extfile names
done
chmod 600 *.key
";

/// A server with TLS on loopback. The fields are dropped in this order.
struct TlsServer {
    process: Process,
    _cluster: Cluster,
    place: TempDir,
    port: u16,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::QUIT);
        let _ = self.0.wait();
    }
}

impl TlsServer {
    fn start() -> Option<TlsServer> {
        let installation = installed()?;
        let place = place();
        let mut openssl = Command::new("sh");
        openssl.args(["-c", CERTIFICATES]).current_dir(place.path());
        let made = openssl.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("PLUMB_REQUIRE_POSTGRES").is_none(), "no openssl");
            println!("skipped: no openssl to make certificates with");
            return None;
        }
        let cluster = Cluster::create(place.path(), "t", &installation, &PLAIN).expect("a cluster");
        let server = cluster.borrowed().start(&[], &Cancel::default()).expect("it starts");
        let mut client = server.connect("test", |_| {}).expect("a session");
        let users = ["by_cert", "by_tls", "by_clear_text", "by_plain"];
        let users = users.map(|name| format!("create role {name} login superuser password 'geheim'"));
        client.batch_execute(&users.join(";")).expect("users");
        drop(client);
        server.stop().expect("a clean stop");
        let data = cluster.data();
        fs::write(data.join("pg_hba.conf"), RULES).expect("a file");
        let account = Account::of_server().expect("a user");
        for file in ["server.crt", "server.key", "root.crt"] {
            give(&account, &place.path().join(file), &data.join(file));
        }
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut command = Command::new(installation.program("postgres"));
        command.arg("-D").arg(&data).args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("port={port}"),
        ]);
        command.args(["-c", "ssl=on", "-c", "ssl_ca_file=root.crt", "-c", "unix_socket_directories=."]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        account.run(&mut command);
        let process = Process(command.spawn().expect("it starts"));
        let server = TlsServer { process, _cluster: cluster, place, port };
        let until = (0..600).any(|_| {
            thread::sleep(Duration::from_millis(50));
            server.visited("by_plain", "127.0.0.1", "sslmode=disable").is_ok()
        });
        assert!(until, "it does not answer");
        Some(server)
    }

    /// Connects as a user by this host; NAME.crt and NAME.key of the options lie in the place.
    fn visited(&self, user: &str, host: &str, options: &str) -> Result<(), String> {
        let here = self.place.path().display();
        let options = options.replace("@", &format!("{here}/"));
        let url = format!("postgres://{user}:geheim@{host}:{}/postgres?{options}", self.port);
        let none = |name: &str| (name == "HOME").then(|| "/nowhere".to_string());
        let address = ServerAddress::parse(&url, &none).map_err(|error| error.to_string())?;
        Visit::of(&address, VisitTerms::default()).map(|_| ()).map_err(|error| {
            let error = error.to_string();
            assert!(!error.contains('\n') && !error.contains("geheim"), "{error}");
            error
        })
    }
}

fn give(account: &Account, from: &Path, to: &Path) {
    fs::copy(from, to).expect("a copy");
    fs::set_permissions(to, fs::Permissions::from_mode(0o600)).expect("a mode");
    account.own(to).expect("its user's");
}

#[test]
fn tls_has_the_meaning_of_libpq() {
    let Some(server) = TlsServer::start() else { return };
    let taken = |user: &str, host: &str, options: &str| {
        server
            .visited(user, host, options)
            .unwrap_or_else(|error| panic!("{user} {host} {options}: {error}"));
    };
    let refused = |user: &str, host: &str, options: &str, expected: &str| {
        let error = server.visited(user, host, options).expect_err(options);
        assert!(error.contains(expected), "{user} {host} {options}: {error}");
    };
    taken("by_tls", "localhost", "sslmode=verify-full&sslrootcert=@root.crt");
    refused(
        "by_tls",
        "127.0.0.1",
        "sslmode=verify-full&sslrootcert=@root.crt",
        "name the host as the certificate's",
    );
    taken("by_tls", "127.0.0.1", "sslmode=verify-ca&sslrootcert=@root.crt");
    refused("by_tls", "localhost", "sslmode=verify-ca&sslrootcert=@other.crt", "TLS failed");
    refused(
        "by_tls",
        "localhost",
        "sslmode=verify-full",
        "there is no file of roots /nowhere/.postgresql/root.crt",
    );
    refused("by_tls", "localhost", "sslmode=verify-full&sslrootcert=@none", "cannot read");
    refused("by_tls", "localhost", "sslrootcert=system", "sslrootcert names the file");
    taken("by_tls", "127.0.0.1", "sslmode=require");
    // A file of roots makes of it verify-ca, as in libpq.
    taken("by_tls", "127.0.0.1", "sslmode=require&sslrootcert=@root.crt");
    refused("by_tls", "127.0.0.1", "sslmode=require&sslrootcert=@other.crt", "TLS failed");
    // The rules of the server decide between the two ways.
    for mode in ["", "sslmode=prefer", "sslmode=allow"] {
        taken("by_tls", "127.0.0.1", mode);
        taken("by_plain", "127.0.0.1", mode);
    }
    refused("by_tls", "127.0.0.1", "sslmode=disable", "no pg_hba.conf entry");
    refused("by_plain", "127.0.0.1", "sslmode=require", "no pg_hba.conf entry");
    taken("by_clear_text", "127.0.0.1", "sslmode=require");
    taken("by_tls", "127.0.0.1", "sslmode=require&channel_binding=require");
    taken("by_tls", "127.0.0.1", "channel_binding=disable&require_auth=scram-sha-256");
    refused("by_plain", "127.0.0.1", "sslmode=disable&channel_binding=require", "channel binding");
    refused("by_clear_text", "127.0.0.1", "sslmode=require&channel_binding=require", "channel binding");
    refused("by_clear_text", "127.0.0.1", "require_auth=scram-sha-256", "which require_auth excludes");
    taken("by_cert", "localhost", "sslmode=require&sslcert=@by_cert.crt&sslkey=@by_cert.key");
    refused("by_cert", "localhost", "sslmode=require", "certificate");
    let key = server.place.path().join("by_cert.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a mode");
    refused("by_cert", "localhost", "sslmode=require&sslcert=@by_cert.crt&sslkey=@by_cert.key", "chmod 600");
    take_own_certificate(&server);
}

/// Gives the server a certificate that is its own root, as `openssl req -x509` makes it.
fn take_own_certificate(server: &TlsServer) {
    let account = Account::of_server().expect("a user");
    let data = server._cluster.data();
    for kind in ["crt", "key"] {
        give(
            &account,
            &server.place.path().join(format!("self.{kind}")),
            &data.join(format!("server.{kind}")),
        );
    }
    kill_process(Pid::from_child(&server.process.0), Signal::HUP).expect("a reload");
    let own = "sslmode=verify-full&sslrootcert=@self.crt";
    let is_taken = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(50));
        server.visited("by_tls", "localhost", own).is_ok()
    });
    assert!(is_taken, "{:?}", server.visited("by_tls", "localhost", own));
    let error = server.visited("by_tls", "127.0.0.1", own).expect_err("another name");
    assert!(error.contains("name the host as the certificate's"), "{error}");
}
