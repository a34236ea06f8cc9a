//! The embedded engine as a target.
//!
//! Databases lie under the study's path, one for each set of settings that are fixed when a
//! database is made; an arm's run opens its database with all of its settings, builds the
//! index, verifies it, and drops it again. The table is never written after its load.
//!
//! Each run is a process of its own: this program with a hidden command, given a [`Request`] on its
//! standard input. So a crash is one failed run and not the end of the study; the peak of its memory
//! is its own; its layout in memory is drawn anew each time, which is known to decide some per cent
//! (Mytkowicz et al. 2009); and what the kernel counts for a process it counts for this
//! run. It costs the start of a process and the opening of a database, some milliseconds outside what is
//! timed. Why not a fork: the parent has threads. Why not in this process: none of the above.
//!
//! The input stays open as long as the study lives. A run whose input ends has lost its study and
//! stops at once.

use super::{Opening, Preparation, RunError, Target, creation_settings, creation_settings_of};
use crate::bundle::{Environment, LimitFigure, Settled};
use crate::calendar::Moment;
use crate::device_probe::{self, Calibrated};
use crate::observer::{Observer, Stage};
use crate::place::{Places, Room};
use crate::record::Record;
use crate::study::Study;
use crate::vocabulary::{Assignment, Figure, Measure, SettingFacts, TargetKind, Vocabulary, Words};
use crate::workload::{self, Place, WORKLOADS};
use crate::{LabError, Temporary, assemble, host, settings, settle};
use plumb_calibrate::Calibration;
use plumb_engine::access::memory;
use plumb_engine::instance::Cancel;
use plumb_engine::settings::Group;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::{Event, Statistic, Unit, clock};
use plumb_io::IoError;
use plumb_io::device::DeviceDescription;
use plumb_units::{path_of_text, path_text};
use plumb_workload::{Work, Workload};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use toml::de::{Deserializer, Error};

/// The hidden command that makes one run.
pub const COMMAND: &str = "study-run";
/// How often a run is asked whether it has ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long after a run the study itself may learn of the signal that ended both.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(50);

/// The engine as a kind of target: its words are the same in every study.
#[derive(Debug, Clone, Copy)]
pub struct Engine;

impl TargetKind for Engine {
    fn name(&self) -> &'static str {
        self.target()
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn vocabulary(&self, _: Deserializer<'_>) -> Result<Vocabulary, Error> {
        Ok(Vocabulary::new(Engine))
    }
}

impl Words for Engine {
    fn target(&self) -> &'static str {
        "engine"
    }

    fn workloads(&self) -> &'static [&'static Workload] {
        WORKLOADS
    }

    fn sections(&self) -> String {
        String::new()
    }

    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String> {
        let mut set = Settings::default();
        set.set(name, value, origin).map_err(|error| error.to_string())?;
        let known = Setting::ALL.iter().find(|setting| setting.row().name.eq_ignore_ascii_case(name));
        let setting = *known.ok_or_else(|| format!("{origin}: there is no setting {name}"))?;
        let value = settings::shown(&set, setting);
        if setting == Setting::IoMethod && value == "null" {
            return Err(format!(
                "{origin}: io_method=null keeps the files in memory, and a study's runs are processes of their own; it \
                 takes auto, sync, threads or io_uring"
            ));
        }
        let row = setting.row();
        let facts = SettingFacts {
            name: row.name.to_string(),
            takes_effect: row.takes_effect,
            about_io: row.group == Group::Io,
            receipt: assemble::seen_of(setting),
        };
        Ok((facts, value))
    }

    fn consistent(&self, settings: &[Assignment]) -> Result<(), String> {
        given(settings).and_then(|settings| settings.require_consistent()).map_err(|error| error.to_string())
    }

    fn measure(&self, name: &str) -> Option<Measure> {
        let event = || Event::ALL.iter().find(|event| event.name() == name);
        let statistic = || Statistic::ALL.iter().find(|statistic| statistic.name() == name);
        let figure = match name {
            "elapsed" => Figure::Elapsed,
            "db time" => Figure::DbTime,
            "db cpu" => Figure::DbCpu,
            _ => match (event(), statistic()) {
                (Some(event), _) => Figure::Event(event.name().to_string()),
                (None, Some(statistic)) if statistic.unit() == Unit::Bytes => Figure::Bytes(name.to_string()),
                (None, Some(_)) => Figure::Count(name.to_string()),
                (None, None) => return None,
            },
        };
        Some(Measure { name: name.to_string(), figure })
    }
}

/// Settings with these set over the defaults.
fn given(assignments: &[Assignment]) -> Result<Settings, EngineError> {
    let mut settings = Settings::default();
    assignments.iter().try_for_each(|set| settings.set(&set.name, &set.value, "study"))?;
    Ok(settings)
}

/// What a run is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Paths as [`path_text`] has them.
    home: String,
    path: String,
    settings: Vec<Assignment>,
    workload: String,
    /// Its parameters as they would be typed.
    parameters: Vec<(String, String)>,
    calibrated: Option<Calibrated>,
    command_line: String,
}

/// A loaded database.
#[derive(Debug)]
struct Database {
    /// What it was made with.
    fixed: Vec<Assignment>,
    home: PathBuf,
    calibrated: Option<Calibrated>,
    /// Removes it.
    _files: Temporary,
}

/// Who is told of the databases that are made.
struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// The embedded engine under a path.
pub struct Embedded<'a> {
    path: PathBuf,
    /// This program.
    program: PathBuf,
    command_line: String,
    calibration: Option<Calibration>,
    device: DeviceDescription,
    observer: &'a dyn Observer,
    cancel: Cancel,
    databases: Vec<Database>,
    /// What its runs do.
    work: Work,
    vocabulary: Vocabulary,
}

impl<'a> Embedded<'a> {
    /// The engine under a path, for the runs of a study.
    ///
    /// # Errors
    /// When there is no such directory, or what lies under it cannot be told.
    pub fn open(study: &Study, opening: Opening<'a>) -> Result<Embedded<'a>, LabError> {
        let Opening { path, program, command_line, calibration, cancel, observer } = opening;
        let described = places(path).describe()?;
        let device = described.into_iter().next().ok_or_else(|| LabError::Directory {
            argument: "--path",
            path: path.to_path_buf(),
            why: "nothing is known of it".to_string(),
        })?;
        // One that was made on another device is no limit of this one.
        let calibration = calibration.filter(|calibration| calibration.matches(&device));
        let why = || "it has no workload".to_string();
        let work =
            study.work.clone().ok_or_else(|| LabError::Plan { study: study.name.clone(), why: why() })?;
        Ok(Embedded {
            path: device.path.clone(),
            program,
            command_line,
            calibration,
            device,
            observer,
            cancel,
            databases: Vec::new(),
            work,
            vocabulary: study.vocabulary.clone(),
        })
    }

    fn database(&self, settings: &[Assignment]) -> Option<&Database> {
        let fixed = creation_settings_of(settings, &self.vocabulary);
        self.databases.iter().find(|database| database.fixed == fixed)
    }

    fn create(&self, name: &str, fixed: Vec<Assignment>, room: Room) -> Result<Database, LabError> {
        let execution = workload::execution(self.work.workload);
        let mut settings = given(&fixed)?;
        execution.apply_defaults(&mut settings)?;
        let places = places(&self.path);
        let cancel = self.cancel.clone();
        let mut files = Temporary::create(&places, name, settings, room, cancel, self.observer)?;
        execution.load(&Place {
            instance: files.instance(),
            work: &self.work,
            devices: std::slice::from_ref(&self.device),
            observer: self.observer,
        })?;
        let calibrated = device_probe::calibrate(files.instance(), execution.source())?;
        let home = files.close();
        Ok(Database { fixed, home, calibrated, _files: files })
    }

    fn request(&self, database: &Database, settings: &[Assignment]) -> Request {
        let set: String = settings.iter().map(|set| format!(" --set {}={}", set.name, set.value)).collect();
        let command_line = format!("plumb run {} --path {}{set}", self.work.arguments(), self.path.display());
        Request {
            home: path_text(&database.home),
            path: path_text(&self.path),
            settings: settings.to_vec(),
            workload: self.work.workload.name.to_string(),
            parameters: self
                .work
                .values()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            calibrated: database.calibrated,
            command_line,
        }
    }
}

fn places(path: &Path) -> Places<'_> {
    Places { home: path, users: &[], temp: &[], indx: &[] }
}

impl Target for Embedded<'_> {
    fn environment(&mut self) -> Result<Environment, LabError> {
        let begin = clock::wall();
        let calibration = self.calibration.as_ref();
        let figures = calibration.map(|found| found.figures.iter()).into_iter().flatten();
        let limit = |figure: &plumb_calibrate::MainFigure| LimitFigure {
            name: figure.kind.name().to_string(),
            unit: figure.kind.unit().to_string(),
            median: figure.estimate.median,
            high: figure.estimate.high,
        };
        Ok(Environment {
            plumb_version: env!("CARGO_PKG_VERSION").to_string(),
            git_revision: option_env!("PLUMB_REVISION").map(str::to_string),
            target: "the embedded engine".to_string(),
            host: host::describe(),
            devices: vec![assemble::device(
                &self.device,
                "by arm",
                "the settings of each arm decide it; its runs' records say which",
            )],
            calibration_date: calibration.map(|found| found.environment.date.clone()),
            limits: figures.map(limit).collect(),
            settings: Vec::new(),
            begin_ns: u64::try_from(begin.as_nanos()).unwrap_or(u64::MAX),
            begin_time: Moment::of(begin).iso(),
            command_line: self.command_line.clone(),
        })
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), LabError> {
        let execution = workload::execution(self.work.workload);
        for (number, fixed) in creation_settings(preparation.arms, &self.vocabulary).into_iter().enumerate() {
            let name = format!("{}-{}", preparation.name, number + 1);
            // What a killed study left; the bundle's lock says that it is dead.
            let _ = fs::remove_dir_all(self.path.join(&name));
            let of_this = |arm: &&Vec<Assignment>| creation_settings_of(arm, &self.vocabulary) == fixed;
            let rooms = preparation.arms.iter().filter(of_this).map(|arm| {
                let mut settings = given(arm)?;
                execution.apply_defaults(&mut settings)?;
                memory::require(&settings, settings.block_size())?;
                Ok(execution.room(&self.work, &settings))
            });
            let room = Room::largest(&rooms.collect::<Result<Vec<_>, EngineError>>()?);
            let database = self.create(&name, fixed, room)?;
            self.databases.push(database);
        }
        Ok(())
    }

    fn settle(&mut self) -> Settled {
        let directories: Vec<PathBuf> = self.databases.iter().map(|database| database.home.clone()).collect();
        let device = self.device.block.as_ref().map(|block| block.name.clone());
        settle::settle(&directories, device.as_slice())
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, RunError> {
        let Some(database) = self.database(settings) else {
            return Err(RunError::Failed("no database was made with its settings".to_string()));
        };
        let request = serde_json::to_string(&self.request(database, settings))
            .map_err(|error| RunError::Failed(error.to_string()))?;
        let mut command = Command::new(&self.program);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|source| {
            RunError::Failed(LabError::Child { program: self.program.clone(), source }.to_string())
        })?;
        watch(child, &request, cancel)
    }
}

/// Waits for a run; kills it when the study is to stop.
fn watch(mut child: Child, request: &str, cancel: &Cancel) -> Result<Record, RunError> {
    let mut input = child.stdin.take();
    // A run that has died already says so by its status.
    let _ =
        input.as_mut().map(|input| input.write_all(request.as_bytes()).and_then(|()| input.write_all(b"\n")));
    let started = reading(child.stdout.take())
        .and_then(|output| Ok((output, reading(child.stderr.take())?)))
        .map_err(|source| RunError::Failed(IoError::thread("the readers of a run", source).to_string()));
    let (output, errors) = started.inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if cancel.check().is_err() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(RunError::Interrupted);
            }
            Ok(None) => thread::sleep(INTERVAL),
            Err(error) => return Err(RunError::Failed(format!("the run's process was lost: {error}"))),
        }
    };
    drop(input);
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    // A signal from the terminal reaches the run too, and maybe before the study.
    if status.signal().is_some() {
        thread::sleep(SIGNAL_PATIENCE);
    }
    if cancel.check().is_err() {
        return Err(RunError::Interrupted);
    }
    if !status.success() {
        let said = errors.lines().last().unwrap_or("it said nothing").trim_start_matches("plumb: ");
        return Err(RunError::Failed(format!("the run's process ended with {status}: {said}")));
    }
    Record::from_json(&output).map_err(|error| RunError::Failed(error.to_string()))
}

/// Takes in a pipe to its end, on a thread of its own.
fn reading(from: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<String>> {
    thread::Builder::new().spawn(move || {
        let mut text = String::new();
        let _ = from.map(|mut from| from.read_to_string(&mut text));
        text
    })
}

/// The run's side: reads a request from standard input, makes the run, and gives its record as JSON. Ends
/// the process when the input ends.
///
/// # Errors
/// When the request cannot be read, or the run does not come to its end.
pub fn serve(input: impl Read + Send + 'static) -> Result<String, LabError> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line).map_err(|source| LabError::Json { source: serde_json::Error::io(source) })?;
    let request: Request = serde_json::from_str(&line).map_err(|source| LabError::Json { source })?;
    let watch = move || {
        let mut rest = Vec::new();
        let _ = input.read_to_end(&mut rest);
        // What is half made owns no space and goes with the study's directory.
        std::process::exit(1);
    };
    let watching = thread::Builder::new().spawn(watch);
    watching.map_err(|source| EngineError::from(IoError::thread("the watch over the study", source)))?;
    let record = execute(&request)?;
    serde_json::to_string(&record).map_err(|source| LabError::Json { source })
}

fn execute(request: &Request) -> Result<Record, LabError> {
    let (home, path) = (path_of_text(&request.home), path_of_text(&request.path));
    let devices = places(&path).describe()?;
    let work = work_of(request)?;
    let mut settings = given(&request.settings)?;
    workload::execution(work.workload).apply_defaults(&mut settings)?;
    let instance = Instance::open(&home, settings, Cancel::default())?;
    let place = Place { instance: &instance, work: &work, devices: &devices, observer: &Silent };
    workload::repeat(&place, &places(&path), (&request.command_line, request.calibrated))
}

fn work_of(request: &Request) -> Result<Work, LabError> {
    let refused = |why: String| LabError::Plan { study: request.workload.clone(), why };
    let workload =
        Workload::find(&request.workload).ok_or_else(|| refused("no such workload".to_string()))?;
    let mut work = Work::of(workload);
    request.parameters.iter().try_for_each(|(name, value)| work.set(name, value)).map_err(refused)?;
    Ok(work)
}
