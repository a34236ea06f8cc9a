//! A trace as text: one line for each request, as iosnoop prints them, then histograms and averages
//! by session.

use super::summary::{histogram, tally};
use super::{Request, RunTrace};
use crate::{TraceBucket, TraceSession};
use plumb_events::Direction;
use plumb_units::{Bytes, COLUMN_MOST, Nanos, RowCount};
use std::fmt::Write as _;
use std::path::Path;

/// Options for printing a trace.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Part of a session's name to select; empty for all sessions.
    pub session: String,
    /// True if each request has a line; otherwise only sums are printed.
    pub lines: bool,
    /// True for whole paths of files.
    pub paths: bool,
}

/// Characters of a histogram's longest bar.
const BAR: u64 = 40;

/// Renders the text of a trace. If no session has the name, the error lists those present.
pub fn render(trace: &RunTrace, options: &Options) -> Result<String, String> {
    let chosen = |name: &str| name.to_lowercase().contains(&options.session.to_lowercase());
    let sessions: Vec<_> = trace.sessions.iter().filter(|session| chosen(&session.name)).collect();
    if sessions.is_empty() && !trace.sessions.is_empty() {
        let names: Vec<&str> = trace.sessions.iter().map(|session| session.name.as_str()).collect();
        return Err(format!(
            "no session has {:?} in its name; there are {}",
            options.session,
            names.join(", ")
        ));
    }
    let mut text = String::new();
    let requests = || sessions.iter().flat_map(|session| session.requests.iter());
    if options.lines {
        let mut lines: Vec<(&str, &Request)> = Vec::new();
        for session in &sessions {
            lines.extend(session.requests.iter().map(|request| (session.name.as_str(), request)));
        }
        lines.sort_by_key(|(_, request)| (request.begin_ns, request.offset));
        write_lines(&mut text, trace, &lines, options);
    }
    let _ = writeln!(text, "Requests by length");
    let lengths = histogram(trace, requests(), |request| request.bytes);
    write_histogram(&mut text, "writes", &lengths, |to| Bytes(to).as_setting());
    let _ = writeln!(text, "\nRequests by service time");
    let times = histogram(trace, requests(), |request| request.latency_ns);
    write_histogram(&mut text, "writes", &times, |to| Nanos(to).to_string());
    let _ = writeln!(text, "\nAverage by session");
    let sums: Vec<TraceSession> =
        sessions.iter().flat_map(|session| tally(trace, &session.name, &session.requests)).collect();
    write_sums(&mut text, &sums);
    let kept: usize = sessions.iter().map(|session| session.requests.len()).sum();
    let _ = writeln!(
        text,
        "\n{} requests in {}; {} were dropped, for which there was no room",
        RowCount(kept as u64),
        Nanos(trace.elapsed_ns),
        RowCount(trace.dropped)
    );
    Ok(text)
}

/// Blocks have 512 bytes and count from the start of the file.
fn write_lines(text: &mut String, trace: &RunTrace, lines: &[(&str, &Request)], options: &Options) {
    let widest = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0).clamp(7, COLUMN_MOST);
    let event = trace.kinds.iter().map(|kind| kind.event.len()).max().unwrap_or(0).clamp(5, COLUMN_MOST);
    let _ = writeln!(
        text,
        "{:>12} {:>9} {:<widest$} D {:>11} {:>8} {:<event$} PATHNAME",
        "TIME(s)", "DELTA(us)", "SESSION", "BLOCK", "SIZE", "EVENT"
    );
    for (name, request) in lines {
        let path = &trace.files[request.file];
        let path = if options.paths { path } else { file_name(path) };
        let letter = letter(trace.direction(request));
        let _ = writeln!(
            text,
            "{:>12.6} {:>9} {name:<widest$} {letter} {:>11} {:>8} {:<event$} {path}",
            request.begin_ns as f64 / 1e9,
            request.latency_ns / 1000,
            request.offset / 512,
            request.bytes,
            trace.kinds[request.kind].event
        );
    }
    text.push('\n');
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

const fn letter(direction: Direction) -> char {
    match direction {
        Direction::Read => 'R',
        Direction::Write => 'W',
    }
}

/// Adds a histogram with its bars. `others` names the requests that are no reads.
pub fn write_histogram(text: &mut String, others: &str, buckets: &[TraceBucket], label: fn(u64) -> String) {
    let most = buckets.iter().map(|bucket| bucket.reads + bucket.writes).max().unwrap_or(0).max(1);
    let _ = writeln!(text, "{:>12} {:>10} {others:>10}", "up to", "reads");
    for bucket in buckets {
        let bar = |count: u64, letter: char| letter.to_string().repeat((count * BAR).div_ceil(most) as usize);
        let bars = bar(bucket.reads, 'r') + &bar(bucket.writes, 'w');
        let line = format!("{:>12} {:>10} {:>10} {bars}", label(bucket.to), bucket.reads, bucket.writes);
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn write_sums(text: &mut String, sums: &[TraceSession]) {
    let widest = sums.iter().map(|sum| sum.name.len()).max().unwrap_or(0).clamp(7, COLUMN_MOST);
    let _ = writeln!(
        text,
        "{:<widest$} D {:>10} {:>12} {:>10} {:>10} {:>10}",
        "SESSION", "REQUESTS", "BYTES", "AVG SIZE", "AVG(us)", "MAX(us)"
    );
    for sum in sums {
        let mean = |total: u64| total as f64 / sum.requests.max(1) as f64;
        let _ = writeln!(
            text,
            "{:<widest$} {} {:>10} {:>12} {:>10.0} {:>10.1} {:>10.1}",
            sum.name,
            letter(sum.direction),
            sum.requests,
            sum.bytes,
            mean(sum.bytes),
            mean(sum.time_ns) / 1e3,
            sum.max_ns as f64 / 1e3
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn requests_print_one_a_line_with_histograms_and_averages() {
        let options = Options { lines: true, ..Options::default() };
        insta::assert_snapshot!("trace", render(&fixture::trace(), &options).expect("all sessions"));
    }

    #[test]
    fn names_of_any_length_are_printed() {
        let mut trace = fixture::trace();
        let long = "n".repeat(70_000);
        trace.sessions[0].name = long.clone();
        trace.kinds.iter_mut().for_each(|kind| kind.event = long.clone());
        let options = Options { lines: true, ..Options::default() };
        assert!(render(&trace, &options).expect("all sessions").contains(&long));
    }

    #[test]
    fn only_an_existing_session_can_be_selected() {
        let of = |session: &str| {
            render(&fixture::trace(), &Options { session: session.to_string(), ..Options::default() })
        };
        let text = of("dbw").expect("there is one");
        assert!(text.contains("DBW0") && !text.contains("session p000"), "{text}");
        let refused = of("LGWR").expect_err("there is none");
        assert_eq!(refused, "no session has \"LGWR\" in its name; there are session p000, DBW0");
    }
}
