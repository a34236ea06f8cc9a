//! Any command as a target: a program started for each run. A level fills its arguments, its
//! environment or a file.
//!
//! ```text
//! study file: [command] [file] [measure] [receipt]  ──> Specification  (this file)
//! an arm's words fill its places                    ──> Job            one run's process (job)
//! ```
//!
//! Words are the settings of such a study: a name in braces in a template. Nothing else varies, so
//! the study shows the difference between two arms. Without a shell nothing expands or hides a
//! process, and new studies may not use syntax that needs a shell (`shell`). All templates are
//! listed once (`templates`), so that a word is known where it is filled in. A word without a value
//! is an error (`template`).
//!
//! A run is observed from outside: its processes in /proc (`host/process`), its output, and
//! receipts that the study declares. A setting that was only requested is reported as such. Two
//! arms with the same executables, arguments, environment and files are one treatment. Such a study
//! is rejected before its first run if possible; its verdicts are INVALID if it shows later.
//!
//! Rejected: measuring a server through its client here, because the client's wait is not the
//! server's work. A server needs a kind of target of its own.
//!
//! Limits: the user undoes changes outside the files that the study names (`prepare`). Processes
//! are sampled ten times a second, so that a file open for less may be missed.

mod figure;
mod job;
mod receipt;
mod secret;
mod shell;
mod template;

use job::Job;

use super::child::{self, Request, Runner};
use super::{ExplainedPlan, Failure, NoRecord, Opening, Preparation, Target};
use crate::bundle::{Environment, Settled};
use crate::definition::Study;
use crate::vocabulary::{
    Assignment, Better, Figure, Made, Measure, Refusal, Seen, SettingFacts, TakesEffect, TargetKind,
    Vocabulary, Words,
};
use crate::{StudyError, sampler, settle};
use plumb_events::Cancel;
use plumb_host::device::{self, DeviceDescription};
use plumb_host::process;
use plumb_io::named_directory;
use plumb_record::{Device, Record};
use plumb_units::path_text;
use plumb_workload::{Work, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::process::Stdio;
use template::{PATH, Template, Values};
use toml::Spanned;
use toml::de::Deserializer;

/// Longest time of a run unless the study sets it.
const TIMEOUT: &str = "10m";
/// Starts of an empty command that measure the cost of a start.
const SPAWNS: usize = 15;

/// Commands as a kind of target.
#[derive(Debug, Clone, Copy)]
pub struct Commands;

/// Name of commands as a kind of target and as a runner.
const RUNNER: &str = "command";

impl TargetKind for Commands {
    fn name(&self) -> &'static str {
        RUNNER
    }

    fn sections(&self) -> &'static [&'static str] {
        &["command", "file", "measure", "receipt"]
    }

    fn vocabulary(&self, sections: Deserializer<'_>) -> Result<Vocabulary, Refusal> {
        let read = Sections::deserialize(sections)?;
        Ok(Vocabulary::new(Specification::new(read)?))
    }
}

/// The sections of a study file before checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    command: Spanned<RawCommand>,
    #[serde(default)]
    file: BTreeMap<String, RawFile>,
    #[serde(default)]
    measure: BTreeMap<String, Spanned<figure::Declared>>,
    #[serde(default)]
    receipt: Vec<Spanned<receipt::Declared>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    run: Spanned<String>,
    /// Run once before the first run; `cleanup` once after the last.
    setup: Option<Spanned<String>>,
    cleanup: Option<Spanned<String>>,
    prepare: Option<Spanned<String>>,
    conclude: Option<Spanned<String>>,
    verify: Option<Spanned<String>>,
    /// Prints the plan of the work; run once an arm, after its warm-up.
    explain: Option<Spanned<String>>,
    #[serde(default)]
    shell: bool,
    /// Accepted exit codes of `run`.
    #[serde(default = "success", skip_serializing_if = "is_success")]
    exit_codes: Vec<u8>,
    #[serde(default = "timeout")]
    timeout: String,
    /// Files whose content is part of the treatment.
    #[serde(default)]
    files: Vec<String>,
    /// Patterns of files whose pages are dropped from the page cache before each run.
    #[serde(default)]
    drop: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

impl RawCommand {
    /// Returns the commands, each by its key.
    fn steps(&self) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
        let beside = [
            ("setup", &self.setup),
            ("cleanup", &self.cleanup),
            ("prepare", &self.prepare),
            ("conclude", &self.conclude),
            ("verify", &self.verify),
            ("explain", &self.explain),
        ];
        let beside = beside.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        std::iter::once(("run", &self.run)).chain(beside)
    }
}

fn success() -> Vec<u8> {
    vec![0]
}

// Omitted at its default, so that older studies keep their hash.
fn is_success(codes: &[u8]) -> bool {
    codes == [0]
}

fn timeout() -> String {
    TIMEOUT.to_string()
}

/// A file that is written before each run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    text: String,
}

/// The sections of a study, checked.
#[derive(Debug, Clone)]
struct Specification {
    sections: Sections,
    timeout_ns: u64,
    /// Words of all templates, each with its place.
    words: BTreeMap<String, String>,
}

impl Specification {
    fn new(sections: Sections) -> Result<Specification, Refusal> {
        let command = sections.command.get_ref();
        let wrong =
            |what: String| Refusal { place: sections.command.span(), what: format!("[command] {what}") };
        let timeout = plumb_units::parse_duration(&command.timeout)
            .map_err(|why| wrong(format!("timeout = {:?}: {why}", command.timeout)))?;
        if command.exit_codes.is_empty() {
            return Err(wrong(
                "exit_codes = []: expected the codes that run may end with, as in [0, 1]".to_string(),
            ));
        }
        for pattern in &command.drop {
            glob::Pattern::new(pattern).map_err(|why| wrong(format!("drop = {pattern:?}: {why}")))?;
        }
        for (name, measure) in &sections.measure {
            let refused = |why| Refusal { place: measure.span(), what: format!("[measure.{name}] {why}") };
            if OWN.iter().any(|(own, _)| own == name) {
                return Err(refused("every command has this measure".to_string()));
            }
            measure.get_ref().check().map_err(refused)?;
        }
        for receipt in &sections.receipt {
            let refused = |why| Refusal { place: receipt.span(), what: format!("[[receipt]] {why}") };
            receipt.get_ref().check().map_err(refused)?;
        }
        secret::require_text(command).map_err(wrong)?;
        let words = words_of(&sections);
        for receipt in &sections.receipt {
            if let Some(word) = receipt.get_ref().when.keys().find(|word| !words.contains_key(*word)) {
                let what = format!(
                    "[[receipt]] when: no template has the word {{{word}}}; they have {}",
                    listed(&words)
                );
                return Err(Refusal { place: receipt.span(), what });
            }
        }
        Ok(Specification { timeout_ns: timeout.0, words, sections })
    }

    fn command(&self) -> &RawCommand {
        self.sections.command.get_ref()
    }

    /// True if a template or one of these values contains the path.
    fn has_path<'s>(&self, mut sets: impl Iterator<Item = &'s Assignment>) -> bool {
        let has = |text: &str| Template::new(text).words().any(|word| word == PATH);
        self.words.contains_key(PATH) || sets.any(|set| has(&set.value))
    }

    /// Splits a command into arguments and fills in these values.
    fn arguments(&self, name: &str, command: &str, values: &Values<'_>) -> Result<Vec<String>, String> {
        let filled = match self.command().shell {
            true => Template::new(command)
                .fill_for_shell(values)
                .map(|text| vec!["/bin/sh".to_string(), "-c".to_string(), text]),
            false => template::arguments(command, values),
        };
        filled.map_err(|why| format!("{name}: {why}"))
    }

    /// Returns the run with these words.
    fn job(&self, words: &[Assignment], path: Option<&str>) -> Result<Job, String> {
        let values = values_of(words, path);
        let command = self.command();
        let fill = |text: &String| Template::new(text).fill(&values);
        let verify = command.verify.as_ref().map(Spanned::get_ref);
        let measure = |(name, measure): (&String, &Spanned<figure::Declared>)| {
            Ok((name.clone(), measure.get_ref().filled(fill)?))
        };
        let receipt = |receipt: &Spanned<receipt::Declared>| {
            receipt.get_ref().filled(|path| Template::new(path).fill_pattern(&values))
        };
        Ok(Job {
            verify: verify.map(|verify| self.arguments("verify", verify, &values)).transpose()?,
            exit_codes: command.exit_codes.clone(),
            named: command.files.iter().map(fill).collect::<Result<_, _>>()?,
            measures: self.sections.measure.iter().map(measure).collect::<Result<_, String>>()?,
            receipts: self.sections.receipt.iter().map(receipt).collect::<Result<_, _>>()?,
            ..self.prepared("run", command.run.get_ref(), words, &values)?
        })
    }

    /// Returns a run of a command between those of an arm that prepare and conclude.
    fn prepared(
        &self,
        name: &str,
        command: &str,
        words: &[Assignment],
        values: &Values<'_>,
    ) -> Result<Job, String> {
        let RawCommand { prepare, conclude, .. } = self.command();
        let optional = |name: &str, step: &Option<Spanned<String>>| {
            step.as_ref().map(|step| self.arguments(name, step.get_ref(), values)).transpose()
        };
        let fill = |text: &String| Template::new(text).fill(values);
        let file = |(name, file): (&String, &RawFile)| Ok((fill(name)?, fill(&file.text)?));
        Ok(Job {
            prepare: optional("prepare", prepare)?,
            conclude: optional("conclude", conclude)?,
            written: self.sections.file.iter().map(file).collect::<Result<_, String>>()?,
            ..self.job_of(name, command, words, values)?
        })
    }

    /// Returns a run of a single command with these values.
    fn job_of(
        &self,
        name: &str,
        command: &str,
        words: &[Assignment],
        values: &Values<'_>,
    ) -> Result<Job, String> {
        // A command run once for all arms must not use variables that differ between them.
        let variables = self.command().environment.iter();
        let variables = variables.filter(|(_, text)| values.fill_all(&Template::new(text)));
        Ok(Job {
            run: self.arguments(name, command, values)?,
            environment: variables
                .map(|(name, text)| Ok((name.clone(), secret::value(self.command(), name, text, values)?)))
                .collect::<Result<_, String>>()?,
            directory: std::env::current_dir().map(|found| path_text(&found)).unwrap_or_default(),
            timeout_ns: self.timeout_ns,
            secrets: self.command().secrets.clone(),
            words: words.to_vec(),
            command_line: Template::new(command).fill(values)?,
            ..Job::default()
        })
    }
}

fn values_of<'a>(words: &'a [Assignment], path: Option<&'a str>) -> Values<'a> {
    Values::new(words.iter().map(|set| (set.name.as_str(), set.value.as_str())), path)
}

/// Returns the words of all templates, each with the first template that uses it.
fn words_of(sections: &Sections) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (place, text) in templates(sections) {
        for word in Template::new(text).words() {
            words.entry(word.to_string()).or_insert_with(|| place.clone());
        }
    }
    words
}

/// Returns every text that words are filled into, with its place.
fn templates(sections: &Sections) -> impl Iterator<Item = (String, &String)> {
    let command = sections.command.get_ref();
    let steps = command.steps().map(|(name, step)| (name.to_string(), step.get_ref()));
    let environment = command.environment.iter().map(|(name, text)| (format!("environment {name}"), text));
    let files = command.files.iter().chain(&command.drop).map(|text| ("a file's name".to_string(), text));
    let written = sections
        .file
        .iter()
        .flat_map(|(name, file)| [("a file's name".to_string(), name), (format!("file {name}"), &file.text)]);
    let measures = sections.measure.iter().flat_map(|(name, measure)| {
        measure.get_ref().templates().map(move |text| (format!("measure {name}"), text))
    });
    let receipts = sections
        .receipt
        .iter()
        .filter_map(|receipt| Some(("the path of a receipt".to_string(), receipt.get_ref().path.as_ref()?)));
    steps.chain(environment).chain(files).chain(written).chain(measures).chain(receipts)
}

/// Measures that every command has, with their units.
pub(crate) const OWN: [(&str, &str); 5] =
    [("elapsed", "s"), ("cpu", "s"), ("user cpu", "s"), ("system cpu", "s"), ("peak memory", "MB")];

impl Words for Specification {
    fn target(&self) -> &'static str {
        Commands.name()
    }

    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String> {
        if !self.words.contains_key(name) || name == PATH {
            let known = listed(&self.words);
            return Err(format!(
                "{origin}: no template of the command has the word {{{name}}}; they have {known}"
            ));
        }
        let declared = self
            .sections
            .receipt
            .iter()
            .map(Spanned::get_ref)
            .filter(|receipt| receipt.when.contains_key(name));
        let best = declared.map(receipt::Declared::seen).max();
        let facts = SettingFacts {
            name: name.to_string(),
            takes_effect: TakesEffect::Start,
            about_io: false,
            receipt: best.unwrap_or(Seen::Asked),
        };
        Ok((facts, value.to_string()))
    }

    fn consistent(&self, settings: &[Assignment]) -> Result<(), String> {
        let set = |word: &String| word == PATH || settings.iter().any(|set| set.name == *word);
        if let Some((word, place)) = self.words.iter().find(|(word, _)| !set(word)) {
            let known: Vec<String> = settings.iter().map(|set| format!("{{{}}}", set.name)).collect();
            return Err(format!(
                "the word {{{word}}} of {place} is set by no factor and not under [settings], which set {}; braces that are \
                 text are doubled: {{{{{word}}}}}",
                known.join(", ")
            ));
        }
        // Any directory serves to check if all words can be filled in.
        self.job(settings, Some("/")).map(|_| ())
    }

    /// Rejects shell syntax in a new study without a shell. A kept study passed it on as arguments,
    /// and is read as it is.
    fn require_new(&self, settings: &[&Assignment]) -> Result<(), Refusal> {
        let command = self.command();
        for (name, step) in command.steps().filter(|_| !command.shell) {
            let refused = |why| Refusal { place: step.span(), what: format!("{name}: {why}") };
            template::require_plain(step.get_ref()).map_err(refused)?;
            let alone = template::alone(step.get_ref());
            let values = settings.iter().filter(|set| alone.contains(&set.name));
            values.into_iter().try_for_each(|set| template::require_plain(&set.value)).map_err(refused)?;
        }
        Ok(())
    }

    fn settings(&self) -> String {
        format!("the words of its templates are {}", listed(&self.words))
    }

    fn has_place(&self, settings: &[&Assignment]) -> bool {
        self.has_path(settings.iter().copied())
    }

    fn workloads(&self) -> &'static [&'static Workload] {
        &[]
    }

    fn measures(&self) -> String {
        let own = OWN.iter().map(|(name, _)| *name);
        let declared = self.sections.measure.keys().map(String::as_str);
        format!(
            "{}; others are declared as [measure.NAME]",
            own.chain(declared).collect::<Vec<_>>().join(", ")
        )
    }

    fn measure(&self, name: &str) -> Option<Measure> {
        if name == "elapsed" {
            return Some(Measure::elapsed());
        }
        if let Some((name, unit)) = OWN.iter().find(|(own, _)| *own == name) {
            return Some(Measure::cost(name, Figure::Measured((*unit).to_string())));
        }
        let declared = self.sections.measure.get(name)?.get_ref();
        let better =
            if declared.better.as_deref() == Some("higher") { Better::Higher } else { Better::Lower };
        Some(Measure { name: name.to_string(), figure: Figure::Measured(declared.unit.clone()), better })
    }

    fn declared(&self) -> Vec<(String, Range<usize>)> {
        self.sections.measure.iter().map(|(name, measure)| (name.clone(), measure.span())).collect()
    }

    fn sections(&self) -> String {
        // The sections were parsed from TOML, so they serialise.
        format!("\n{}", toml::to_string(&secret::left_out(&self.sections)).unwrap_or_default())
    }

    fn between_runs(&self, values: &[&Assignment]) -> String {
        let command = self.command();
        let own =
            [("conclude", &command.conclude), ("verify", &command.verify), ("prepare", &command.prepare)];
        let own: Vec<&str> =
            own.into_iter().filter(|(_, command)| command.is_some()).map(|(name, _)| name).collect();
        let own = (!own.is_empty()).then(|| format!("{} of the study ran", own.join(", ")));
        let files =
            (!self.sections.file.is_empty()).then(|| "its files were put back and written again".to_string());
        let dropped = (!command.drop.is_empty())
            .then(|| format!("the pages of {} left the page cache", command.drop.join(", ")));
        let device = self.has_path(values.iter().copied()).then(|| {
            "the block device under the path was waited for until nothing moved on it, for 2 s at most"
                .to_string()
        });
        let all: Vec<String> = [own, files, dropped, device].into_iter().flatten().collect();
        if all.is_empty() { "nothing but a pause of milliseconds".to_string() } else { all.join("; ") }
    }

    fn not_randomised(&self, _: Made<'_>) -> String {
        "only the order of runs within blocks and the length of their environment were drawn; not the machine, the day, nor \
         the files and services that the command uses"
            .to_string()
    }

    fn not_tested(&self, _: Option<&Work>) -> String {
        "Other arguments and other data than these.".to_string()
    }

    fn parts(&self) -> (&'static str, &'static str) {
        ("CPU", "CPU is the time of all its processes on processors, at most the whole; the rest is unknown")
    }
}

/// Lists words in braces, without the path.
fn listed(words: &BTreeMap<String, String>) -> String {
    let known: Vec<String> =
        words.keys().filter(|word| *word != PATH).map(|word| format!("{{{word}}}")).collect();
    if known.is_empty() { "none".to_string() } else { known.join(", ") }
}

/// A command that a study runs.
pub struct CommandTarget<'a> {
    opening: Opening<'a>,
    specification: Specification,
    name: String,
    /// The device under the study's path, if it names one.
    device: Option<DeviceDescription>,
    /// Text form of the path ([`path_text`]); `None` if no template or value uses it.
    path: Option<String>,
    /// Words that all arms share, set by `prepare`.
    shared: Vec<Assignment>,
    /// True if arms may be one treatment.
    expects_same: bool,
    /// True after the start of `setup`: only then `cleanup` has something to undo.
    has_begun: bool,
}

impl<'a> CommandTarget<'a> {
    /// Opens the command of a study. Fails if the study's target is no command, or
    /// its path is no directory.
    pub fn open(study: &Study, opening: Opening<'a>) -> Result<CommandTarget<'a>, StudyError> {
        let specification = study.vocabulary.of::<Specification>().cloned();
        let specification = specification.ok_or_else(|| StudyError::Plan {
            study: study.name.clone(),
            why: format!("its target is {}, and no command", study.vocabulary.target()),
        })?;
        secret::require(specification.command(), &study.to_toml())
            .map_err(|why| StudyError::Plan { study: study.name.clone(), why })?;
        let device = match specification.has_path(study.all_settings()) {
            true => {
                named_directory::require("--path", opening.path)?;
                Some(plumb_io::describe_device(opening.path)?)
            }
            false => None,
        };
        let path = device.as_ref().map(|device| path_text(&device.path));
        Ok(CommandTarget {
            opening,
            specification,
            name: study.name.clone(),
            device,
            path,
            shared: Vec::new(),
            expects_same: study.expects_same,
            has_begun: false,
        })
    }

    fn disks(&self) -> Vec<String> {
        let block = self.device.as_ref().and_then(|device| device.block.as_ref());
        block.map(|block| block.name.clone()).into_iter().collect()
    }

    fn wrong(&self, why: String) -> StudyError {
        StudyError::Plan { study: self.name.clone(), why }
    }

    /// Returns a run of a command that belongs to the whole study.
    fn job_of_all(&self, what: &str, command: &str) -> Result<Job, StudyError> {
        let values = values_of(&self.shared, self.path.as_deref());
        if let Some(word) = values.missing(&Template::new(command)) {
            return Err(self.wrong(format!(
                "{what}: {{{word}}} differs between arms, and {what} is run once for all; move it to prepare or conclude"
            )));
        }
        self.specification.job_of(what, command, &self.shared, &values).map_err(|why| self.wrong(why))
    }

    /// Runs a command that belongs to the whole study, to its end or until it is cancelled.
    fn once(&self, what: &str, command: Option<&Spanned<String>>, cancel: &Cancel) -> Result<(), StudyError> {
        let Some(command) = command.map(Spanned::get_ref) else { return Ok(()) };
        let job = self.job_of_all(what, command)?;
        let made = Request::to(RUNNER, &job)
            .and_then(|request| child::run(&self.opening.program, &request, cancel, &|_| {}));
        match made {
            Ok(_) | Err(NoRecord::Interrupted) => Ok(()),
            Err(NoRecord::Failed(failure)) => Err(self.wrong(format!("{what}: {}", failure.whole()))),
        }
    }

    /// Returns the files whose pages are dropped before a run with these words.
    fn dropped(&self, words: &[Assignment]) -> Result<Vec<PathBuf>, String> {
        let values = values_of(words, self.path.as_deref());
        let patterns = self.specification.command().drop.iter();
        let patterns: Vec<String> =
            patterns.map(|text| Template::new(text).fill_pattern(&values)).collect::<Result<_, _>>()?;
        let found = patterns.iter().flat_map(|pattern| glob::glob(pattern).into_iter().flatten().flatten());
        Ok(found.filter(|path| path.is_file()).collect())
    }
}

impl Drop for CommandTarget<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            return;
        }
        // A failed cleanup does not change the study's result. It runs after a cancel, too.
        let cleanup = self.specification.command().cleanup.as_ref();
        let _ = self.once("cleanup", cleanup, &Cancel::default());
    }
}

/// Returns the median cost of starting a command that does nothing.
fn spawn_cost() -> Option<u64> {
    let once = || {
        let mut command = std::process::Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Some(process::start(&mut command).ok()?.wait().ok()?.elapsed.0)
    };
    let mut costs: Vec<u64> = (0..SPAWNS).filter_map(|_| once()).collect();
    costs.sort_unstable();
    costs.get(costs.len() / 2).copied()
}

impl Target for CommandTarget<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        let calibration = self
            .opening
            .calibration
            .as_ref()
            .filter(|found| self.device.as_ref().is_some_and(|device| found.matches(device)));
        let device = |device| Device::of(device, "by the command", "it opens its files itself");
        let devices = self.device.iter().map(device).collect();
        let run = self.specification.command().run.get_ref();
        let target = match Template::new(run).alone() {
            Some(word) => format!("whole commands, those of {word} under Factors"),
            None if self.specification.words.is_empty() => format!("the command {run}"),
            None => format!("the command {run}, each word in braces as the arm has it"),
        };
        let command_line = secret::without(self.specification.command(), &self.opening.command_line);
        Ok(Environment {
            spawn_ns: spawn_cost(),
            ..Environment::now(target, devices, calibration, &command_line)
        })
    }

    /// Rejects arms that would start the same command.
    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        // From here on an interrupt must end the study in order.
        self.opening.observer.begins();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for arm in preparation.arms {
            let job = self.specification.job(arm, self.path.as_deref()).map_err(|why| self.wrong(why))?;
            let given = format!("{:?}{:?}{:?}{:?}", job.run, job.environment, job.written, job.named);
            if !known.insert(given) && !self.expects_same {
                let shown = job.run.join(" ");
                return Err(self.wrong(format!(
                    "two arms start the same: {shown}; if they are to be one treatment, say expects = \"same\""
                )));
            }
        }
        let of_all = |set: &&Assignment| preparation.arms.iter().all(|arm| arm.contains(set));
        self.shared = preparation.arms.first().into_iter().flatten().filter(of_all).cloned().collect();
        let RawCommand { setup, cleanup, .. } = self.specification.command();
        // Checked now, because errors of cleanup at the end are not reported.
        cleanup.iter().try_for_each(|cleanup| self.job_of_all("cleanup", cleanup.get_ref()).map(|_| ()))?;
        // The pilot has already prepared the study after it.
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        self.once("setup", setup.as_ref(), &self.opening.cancel.clone())
    }

    fn ready(&mut self, settings: &[Assignment]) -> Result<Settled, StudyError> {
        let dropped = self.dropped(settings).map_err(|why| self.wrong(format!("drop: {why}")))?;
        Ok(settle::settle(&dropped, &self.disks()))
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        let mut job = self
            .specification
            .job(settings, self.path.as_deref())
            .map_err(|why| NoRecord::Failed(why.into()))?;
        job.disks = self.disks();
        job.sampled = match self.device.as_slice() {
            [] => device::disks(),
            devices => sampler::names(devices),
        };
        child::run(&self.opening.program, &Request::to(RUNNER, &job)?, cancel, &|_| {})
    }

    fn explain(
        &mut self,
        settings: &[Assignment],
        cancel: &Cancel,
    ) -> Result<Option<ExplainedPlan>, NoRecord> {
        let Some(explain) = &self.specification.command().explain else { return Ok(None) };
        let values = values_of(settings, self.path.as_deref());
        let job = self.specification.prepared("explain", explain.get_ref(), settings, &values);
        let job = job.map_err(|why| NoRecord::Failed(why.into()))?;
        let made = child::run(&self.opening.program, &Request::to(RUNNER, &job)?, cancel, &|_| {});
        match made {
            Ok(record) => Ok(record.command.map(|run| ExplainedPlan { plan: run.output, sizes: None })),
            Err(NoRecord::Failed(failure)) => {
                let why = format!("explain: {}", failure.why);
                Err(NoRecord::Failed(Failure { why, ..failure }))
            }
            Err(interrupted) => Err(interrupted),
        }
    }
}

impl Runner for Commands {
    fn runner(&self) -> &'static str {
        RUNNER
    }

    fn make(&self, run: Value, _: fn(&str)) -> Result<Record, Failure> {
        let job: Job = serde_json::from_value(run).map_err(|error| error.to_string())?;
        job.execute()
    }

    fn abandon(&self, run: &Value) {
        if let Ok(job) = serde_json::from_value::<Job>(run.clone()) {
            job.abandon();
        }
    }
}
