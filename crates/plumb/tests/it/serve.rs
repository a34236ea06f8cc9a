//! `plumb serve`: every route answers what the program prints, and a signal ends it at once.

use crate::program::{command, fine, names, plumb, refused, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server, which ends with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(directory: &Path) -> Served {
        let mut child =
            command(directory).arg("serve").stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
        Served { child, address }
    }

    /// Returns status and body of a route.
    fn get(&self, path: &str) -> (String, String) {
        let mut client = TcpStream::connect(&self.address).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        client.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it is answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).unwrap_or_default().to_string(), body.to_string())
    }

    #[track_caller]
    fn body(&self, path: &str) -> String {
        let (status, body) = self.get(path);
        assert_eq!(status, "200", "{path}: {body}");
        body
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_route_answers_what_the_program_prints() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for _ in 0..2 {
        fine(here, ["run", "redo", "--rows", "2K", "--quiet"]);
    }
    // Its claim stays open, which is an exit code.
    plumb(here, ["compare-commands", "true", "sh -c true", "--blocks", "6"]);
    let bundles = names(&here.join("plumb-reports"));
    let (runs, studies): (Vec<&String>, Vec<&String>) =
        bundles.iter().partition(|name| name.starts_with("redo"));
    let [one, two] = runs[..] else { panic!("{bundles:?}") };
    let [study] = studies[..] else { panic!("{bundles:?}") };
    let at = |id: &str| format!("./plumb-reports/{id}");
    let served = Served::start(here);
    let same = |route: &str, arguments: &[&str]| {
        let printed = fine(here, arguments.iter().chain(&["--json"]));
        assert_eq!(served.body(route), printed, "{route}");
    };
    same(&format!("/bundles/{one}/record"), &["report", &at(one)]);
    same(&format!("/bundles/{study}/analysis"), &["report", &at(study)]);
    // The commands above have written the reports again, which their rows say.
    same("/bundles", &["list", "bundles"]);
    same(&format!("/compare?a={one}&b={two}"), &["compare", &at(one), &at(two)]);
    same("/settings", &["list", "settings"]);
    same("/events", &["list", "events"]);
    same("/series?workload=redo", &["report", "--series", &at(one), &at(two)]);
    same(
        "/series?figure=elapsed&workload=redo",
        &["report", "--figure", "Elapsed", "--series", &at(one), &at(two)],
    );
    // Others use the disk meanwhile.
    let without_free = |text: &str| -> Vec<String> {
        let rows: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let rows = rows.as_array().expect("rows").iter().filter(|row| row["topic"] != "free disk");
        rows.map(|row| row.to_string()).collect()
    };
    let health = fine(here, ["list", "bundles", "--health", "--json"]);
    assert_eq!(without_free(&served.body("/health")), without_free(&health));
    let api: serde_json::Value = serde_json::from_str(&served.body("/openapi.json")).expect("JSON");
    assert_eq!(api["paths"].as_object().map(serde_json::Map::len), Some(16));
    assert!(served.body("/metrics").contains("plumb_bundles{kind=\"run\",state=\"ended\"} 2\n"));
    for (route, part) in [
        ("/".to_string(), one.as_str()),
        (format!("/?a={one}"), "with this"),
        (format!("/bundles/{one}/report"), "redo"),
        (format!("/bundles/{study}/report"), "PLUMB STUDY REPORT"),
        (format!("/pages/compare?a={one}&b={two}"), "COMPARE"),
        ("/pages/series?figure=Elapsed&workload=redo".to_string(), "SERIES"),
        ("/pages/health".to_string(), "HEALTH"),
        ("/style.css".to_string(), "--paper"),
    ] {
        assert!(served.body(&route).contains(part), "{route}");
    }
    let (status, line) = served.get(&format!("/bundles/{one}/analysis"));
    assert!(status == "404" && line.contains("is no study"), "{line}");
    for query in ["figure=none", "x=1"] {
        assert_eq!(served.get(&format!("/series?{query}")).0, "400", "{query}");
    }
}

#[test]
fn a_signal_ends_the_server_at_once_and_nothing_is_left() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut served = Served::start(directory.path());
    // A client that has not sent its request does not hold the server.
    let _client = TcpStream::connect(&served.address).expect("a connection");
    let pid = served.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert!(!served.child.wait().expect("it ends").success());
    assert_eq!(names(directory.path()), Vec::<String>::new());
    let (code, line) = refused(directory.path(), ["serve", "--listen", "0.0.0.0:8080"]);
    assert!(code == 2 && line.contains("listens on loopback alone"), "{line}");
    let (code, line) = refused(directory.path(), ["list", "tables", "--health"]);
    assert!(code == 2 && line.contains("--health"), "{line}");
}

#[test]
fn health_tells_a_study_in_progress_from_one_that_was_interrupted_or_killed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let health = |rest: &[&str]| fine(here, ["list", "bundles", "--health"].iter().chain(rest));
    assert!(health(&[]).contains("NOTHING ARRIVING"), "{}", health(&[]));
    for (signal, state) in [("-INT", "interrupted"), ("-KILL", "killed")] {
        let study = ["compare-commands", "sleep 0.02", "sleep 0.03", "--blocks", "500"];
        let mut starting = command(here);
        starting.args(study).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = starting.spawn().expect("the program starts");
        let running = ["--where", "unfinished", "--where", "in progress"];
        wait_until("a bundle in progress with a run", || {
            let reports = here.join("plumb-reports");
            let has_run = |name: &String| reports.join(name).join("runs/0003.json").is_file();
            let is_new = reports.is_dir() && names(&reports).last().is_some_and(has_run);
            is_new && health(&running).contains("in progress")
        });
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill").success());
        child.wait().expect("it ends");
        let found = health(&["--where", "unfinished", "--where", state]);
        assert!(found.contains("plumb-reports/") && !health(&running).contains("in progress"), "{found}");
    }
}
