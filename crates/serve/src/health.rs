//! Health of what measures: what is unfinished, left behind, old, full or silent.
//!
//! A monitor on which nothing arrives looks healthy. So *nothing arriving* is a state of its own,
//! and a figure that is unknown is left out, never zero.
//!
//! Limits: one machine. A calibration counts by the name of its device.

use crate::Program;
use plumb_events::clock;
use plumb_host::device::space;
use plumb_host::leftover::{Fate, Remains};
use plumb_io::marked;
use plumb_pages::list::{Field, RowList};
use plumb_record::calendar::Moment;
use plumb_report::table::{Column, Table, Tone};
use plumb_report::{Document, ReportAnswer, Section, State, Summary, cells, text};
use plumb_run::calibration_store;
use plumb_study::StudyError;
use plumb_study::bundle::listing::{self, BundleProgress, FoundBundle, REPORTS_BELOW};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time without a new bundle after which nothing arrives: a nightly run has failed once.
const SILENCE: Duration = Duration::from_secs(36 * 3600);
/// Share of a file system below which it is nearly full.
const NEARLY_FULL: f64 = 0.05;
/// Rows of a topic at most, the newest.
const ROWS_MOST: usize = 20;
const HEAD: [&str; 6] = ["TOPIC", "NAME", "STATE", "SINCE", "BYTES", "SAYS"];

/// State of a directory of bundles and of the machine.
pub struct Health {
    topics: Vec<Row>,
    /// Number of bundles of each kind and progress.
    counts: BTreeMap<(String, &'static str), u64>,
    /// Number of disturbed runs, among those that the rows no longer name, too.
    disturbed: u64,
    newest: Option<String>,
}

struct Row {
    topic: &'static str,
    name: String,
    state: String,
    tone: Tone,
    since: String,
    bytes: Option<u64>,
    says: String,
}

impl Row {
    fn new(topic: &'static str, name: impl Into<String>, state: impl Into<String>, tone: Tone) -> Row {
        let (name, state) = (name.into(), state.into());
        Row { topic, name, state, tone, since: String::new(), bytes: None, says: String::new() }
    }
}

impl Health {
    /// Reads the state of these directories.
    pub fn of(program: &Program, directories: &[PathBuf]) -> Result<Health, StudyError> {
        Health::at(clock::wall(), program, directories)
    }

    fn at(now: Duration, program: &Program, directories: &[PathBuf]) -> Result<Health, StudyError> {
        let mut found = Vec::new();
        for directory in directories {
            found.extend(listing::find(directory, program.kinds)?);
        }
        found.sort_by(|one, two| one.head.date.cmp(&two.head.date));
        let newest =
            found.iter().rev().find(|found| found.path.is_some()).map(|found| found.head.date.clone());
        let mut counts = BTreeMap::new();
        for one in &found {
            *counts.entry((one.head.kind.clone(), word_of(one.head.progress))).or_insert(0) += 1;
        }
        let disturbed: Vec<&FoundBundle> =
            found.iter().filter(|one| one.head.headline.contains("DISTURBED")).collect();
        let mut topics = vec![arrival(now, newest.as_deref())];
        topics.extend(found.iter().filter_map(unfinished));
        topics.extend(last(&found.iter().filter(|one| one.path.is_none()).collect::<Vec<_>>()).map(|one| {
            Row {
                since: one.head.date.clone(),
                says: one.head.headline.clone(),
                ..Row::new("ended early", &one.head.asked, &one.head.kind, Tone::Open)
            }
        }));
        topics.extend(leftovers(program, directories));
        topics.extend((program.journals)().iter().map(|path| Row {
            says: "a killed study left settings on a server; plumb undo puts them back".to_string(),
            ..Row::new("undo journal", path.display().to_string(), "WAITS", Tone::Bad)
        }));
        topics.extend(calibrations(&found, directories));
        topics.extend(directories.iter().filter_map(|directory| free(directory)));
        topics.extend(last(&disturbed).map(|one| Row {
            since: one.head.date.clone(),
            says: one.head.headline.clone(),
            ..Row::new("disturbed", shown(one), "DISTURBED", Tone::Open)
        }));
        Ok(Health { topics, counts, disturbed: disturbed.len() as u64, newest })
    }

    /// Returns the rows for a terminal and for programs.
    pub fn list(&self) -> RowList {
        let row = |row: &Row| {
            let text = |text: &String| Field::from(text.clone());
            let bytes = row.bytes.map_or(Field::none(""), Field::bytes);
            vec![
                row.topic.into(),
                text(&row.name),
                text(&row.state),
                text(&row.since),
                bytes,
                text(&row.says),
            ]
        };
        RowList::new(&HEAD, self.topics.iter().map(row).collect())
    }

    pub fn document(&self, version: &str) -> Document {
        let of_tone = |tone: Tone| self.topics.iter().filter(|row| row.tone == tone).collect::<Vec<_>>();
        let (bad, open) = (of_tone(Tone::Bad), of_tone(Tone::Open));
        let (word, tone) = match (bad.len(), open.len()) {
            (0, 0) => ("NOTHING TO SAY".to_string(), Tone::Good),
            (0, open) => (format!("{open} to look at"), Tone::Open),
            (bad, _) => (format!("{bad} need a hand"), Tone::Bad),
        };
        let reasons = bad.iter().map(|row| format!("{} {}: {}", row.topic, row.name, row.state));
        let topics: BTreeSet<&str> = self.topics.iter().map(|row| row.topic).collect();
        let section = |topic: &&str| {
            let mut table = Table::default()
                .column(Column::wrapped("Name", 50))
                .text(["State", "Since"])
                .numbers(["Bytes"])
                .column(Column::wrapped("Says", 60));
            for row in self.topics.iter().filter(|row| row.topic == *topic) {
                let bytes = row.bytes.map_or(String::new(), |bytes| plumb_units::Bytes(bytes).to_string());
                table.row(cells![&row.name, &row.state, &row.since, bytes, &row.says]);
            }
            Section::front(topic.replace(' ', "-"), titled(topic)).table(table)
        };
        Document {
            title: "HEALTH of what measures".to_string(),
            answer: ReportAnswer::default(),
            question: String::new(),
            running_head: "Health".to_string(),
            width: text::WIDTH,
            state: State { of: "Health".to_string(), word, tone },
            basis: String::new(),
            reasons: reasons.collect(),
            headline: Vec::new(),
            sections: topics.iter().map(section).collect(),
            summary: Summary::default(),
            footer: format!("plumb {version}"),
            data: self.list().to_json(),
        }
    }

    /// Formats the figures as OpenMetrics.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, help: &str, samples: Vec<(String, String)>| {
            text.push_str(&format!("# TYPE plumb_{name} gauge\n# HELP plumb_{name} {help}\n"));
            samples
                .iter()
                .for_each(|(labels, value)| text.push_str(&format!("plumb_{name}{labels} {value}\n")));
        };
        let of_topic = |topic: &str| self.topics.iter().filter(|row| row.topic == topic).count().to_string();
        let alone = |value: String| vec![(String::new(), value)];
        let bundles = self.counts.iter().map(|((kind, state), count)| {
            (format!("{{kind=\"{}\",state=\"{}\"}}", label(kind), label(state)), count.to_string())
        });
        family("bundles", "Bundles by kind and state.", bundles.collect());
        let newest = self.newest.as_deref().and_then(Moment::parse);
        let newest = newest.map(|newest| alone(newest.since_epoch().as_secs().to_string()));
        family("newest_bundle_timestamp_seconds", "End of the newest bundle.", newest.unwrap_or_default());
        let is_silent = self.topics.iter().any(|row| row.topic == ARRIVAL && row.tone != Tone::Good);
        family(
            "arriving",
            "1 if a bundle is new, 0 if nothing arrives.",
            alone(u8::from(!is_silent).to_string()),
        );
        family("leftovers", "Things that killed processes left.", alone(of_topic("leftover")));
        family("undo_journals", "Undo journals that wait.", alone(of_topic("undo journal")));
        family("disturbed_bundles", "Bundles of disturbed runs.", alone(self.disturbed.to_string()));
        let free =
            self.topics.iter().filter(|row| row.topic == FREE).filter_map(|row| {
                Some((format!("{{path=\"{}\"}}", label(&row.name)), row.bytes?.to_string()))
            });
        family("free_bytes", "Bytes that a user may still fill.", free.collect());
        text + "# EOF\n"
    }
}

const ARRIVAL: &str = "arrival";
const FREE: &str = "free disk";

/// Escapes the value of a label.
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn last<'f>(found: &[&'f FoundBundle]) -> impl Iterator<Item = &'f FoundBundle> {
    found[found.len().saturating_sub(ROWS_MOST)..].iter().copied()
}

/// Returns a topic as a title.
fn titled(topic: &str) -> String {
    let mut letters = topic.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn shown(found: &FoundBundle) -> String {
    found.path.as_ref().map_or(String::new(), |path| path.display().to_string())
}

fn word_of(progress: BundleProgress) -> &'static str {
    match progress {
        BundleProgress::Ended => "ended",
        BundleProgress::InProgress => "in progress",
        BundleProgress::Interrupted => "interrupted",
        BundleProgress::Killed => "killed",
        BundleProgress::EndedEarly => "ended early",
    }
}

fn arrival(now: Duration, newest: Option<&str>) -> Row {
    let then = newest.and_then(Moment::parse).map(Moment::since_epoch);
    let is_new = then.is_some_and(|then| now.saturating_sub(then) < SILENCE);
    let (state, tone) = if is_new { ("ARRIVING", Tone::Good) } else { ("NOTHING ARRIVING", Tone::Bad) };
    let says = match (newest, is_new) {
        (None, _) => "there is no bundle".to_string(),
        (Some(_), true) => String::new(),
        (Some(_), false) => format!("no bundle for {} hours or more", SILENCE.as_secs() / 3600),
    };
    Row { since: newest.unwrap_or_default().to_string(), says, ..Row::new(ARRIVAL, "bundles", state, tone) }
}

fn unfinished(found: &FoundBundle) -> Option<Row> {
    let tone = match found.head.progress {
        BundleProgress::InProgress => Tone::Plain,
        BundleProgress::Interrupted => Tone::Open,
        BundleProgress::Killed => Tone::Bad,
        BundleProgress::Ended | BundleProgress::EndedEarly => return None,
    };
    let row = Row::new("unfinished", shown(found), word_of(found.head.progress), tone);
    Some(Row { since: found.head.date.clone(), says: found.head.headline.clone(), ..row })
}

fn leftovers(program: &Program, directories: &[PathBuf]) -> Vec<Row> {
    let mut found: Vec<Remains> = Vec::new();
    for directory in directories {
        found.extend(marked::find(directory, REPORTS_BELOW, program.leftovers));
    }
    found.extend(program.leftovers.iter().flat_map(|maker| maker.elsewhere()));
    let row = |one: Remains| {
        let (state, says) = match &one.fate {
            Fate::Removed => ("LEFT", "plumb clean removes it".to_string()),
            Fate::Ends(how) => ("LEFT", format!("plumb clean: {how}")),
            Fate::Stays(why) => ("STAYS", why.clone()),
        };
        Row { bytes: Some(one.bytes.0), says, ..Row::new("leftover", one.name, state, Tone::Bad) }
    };
    found.into_iter().map(row).collect()
}

/// Returns the newest calibration of each device, from bundles and from the served directories.
fn calibrations(found: &[FoundBundle], directories: &[PathBuf]) -> Vec<Row> {
    let mut newest: BTreeMap<String, Row> = BTreeMap::new();
    let mut add = |device: &str, since: &str, is_settled: bool, says: String| {
        if newest.get(device).is_some_and(|known| known.since.as_str() >= since) {
            return;
        }
        let (state, tone) = if is_settled { ("SETTLED", Tone::Good) } else { ("IN DOUBT", Tone::Open) };
        let row = Row { since: since.to_string(), says, ..Row::new("calibration", device, state, tone) };
        newest.insert(device.to_string(), row);
    };
    for one in found.iter().filter(|one| one.head.kind == "calibration" && !one.head.device.is_empty()) {
        let is_settled = one.head.headline.contains("SETTLED");
        add(&one.head.device, &one.head.date, is_settled, shown(one));
    }
    for directory in directories {
        let Ok(Some(stored)) = calibration_store::read(directory) else { continue };
        let file = directory.join(calibration_store::FILE).display().to_string();
        let environment = &stored.environment;
        add(&environment.device, &environment.date, stored.doubts().is_empty(), file);
    }
    newest.into_values().collect()
}

fn free(directory: &Path) -> Option<Row> {
    let space = space(directory).ok()?;
    let share = space.free.0 as f64 / space.total.0.max(1) as f64;
    let (state, tone) = if share < NEARLY_FULL { ("NEARLY FULL", Tone::Bad) } else { ("FREE", Tone::Good) };
    let row = Row::new(FREE, directory.display().to_string(), state, tone);
    Some(Row { bytes: Some(space.free.0), says: format!("of {}", space.total), ..row })
}
