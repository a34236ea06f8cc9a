//! The embedded engine as a target.
//!
//! A database is under the study's path. An arm's run opens it with all of its settings, builds the
//! index, verifies it, and drops it again. The table is never written after its load. If arms
//! differ in a setting that is fixed when a database is made, each run has a database of its own.
//! It is made before the run is timed and removed before the next is made. So there needs to be
//! room for one at a time, and the placement of files is random for each run.

use crate::device_probe::{self, Calibrated};
use crate::place::{Placed, Placement, Places, Room};
use crate::workload::{self, Place};
use crate::{RunError, Temporary, assemble, settings};
use plumb_calibrate::Calibration;
use plumb_engine::access::memory;
use plumb_engine::settings::Group;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::{Cancel, Event, IoStream, Statistic, Unit};
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory::NamedDirectoryError;
use plumb_record::{Device, Record};
use plumb_study::StudyError;
use plumb_study::bundle::{Environment, Settled};
use plumb_study::canary::Canary;
use plumb_study::definition::Study;
use plumb_study::settle;
use plumb_study::targets::child::{self, Request, Runner};
use plumb_study::targets::{Failure, NoRecord, Opening, Preparation, Target, creation_settings_of};
use plumb_study::vocabulary::{
    Assignment, Figure, Join, Made, Measure, Refusal, Seen, SettingFacts, TakesEffect, TargetKind,
    Vocabulary, Words,
};
use plumb_study::{Observer, Stage};
use plumb_units::{RowCount, path_of_text, path_text};
use plumb_workload::{Decides, Parameter, WORKLOADS, Work, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use toml::de::Deserializer;

/// The engine as a kind of target: all studies share its vocabulary.
#[derive(Debug, Clone, Copy)]
pub struct Engine;

impl TargetKind for Engine {
    fn name(&self) -> &'static str {
        self.target()
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn vocabulary(&self, _: Deserializer<'_>) -> Result<Vocabulary, Refusal> {
        Ok(Vocabulary::new(Engine))
    }
}

impl Words for Engine {
    fn target(&self) -> &'static str {
        "engine"
    }

    fn settings(&self) -> String {
        "`plumb list settings` shows them".to_string()
    }

    fn workloads(&self) -> &'static [&'static Workload] {
        WORKLOADS
    }

    fn between_runs(&self, _: &[&Assignment]) -> String {
        "the data files are made durable and dropped from the page cache, and the block device is waited for until nothing \
         moves on it, for 2 s at most"
            .to_string()
    }

    fn not_randomised(&self, made: Made<'_>) -> String {
        let files = match made {
            Made::EachRun => {
                let drawn = "the order of runs within blocks, and with it where the files of each run's own database came to lie";
                return format!(
                    "only {drawn}, was drawn; not the machine, the day, nor the rows of the table"
                );
            }
            Made::Once([]) => "the database, made once for all arms".to_string(),
            Made::Once(factors) => format!(
                "the databases, made once for each level of {}, so that where its files came to lie counts as the level's",
                factors.join(" and ")
            ),
        };
        format!(
            "only the order of runs within blocks was drawn; not the machine, the day, the rows of the table, nor {files}"
        )
    }

    fn not_tested(&self, work: Option<&Work>) -> String {
        let rows = work.map_or(0, Work::rows);
        format!("Tables of other sizes than {} rows, and other data than these.", RowCount(rows))
    }

    fn parts(&self) -> (&'static str, &'static str) {
        (
            "DB CPU",
            "each part of the time in which foreground sessions were not idle, divided by the average number of them that was \
             active; means over the counted runs",
        )
    }

    fn sections(&self) -> String {
        String::new()
    }

    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String> {
        if let Some(parameter) = parameter(name) {
            let value = parameter.parse(value).map_err(|why| format!("{origin}: {name}: {why}"))?;
            let facts = SettingFacts {
                name: parameter.name.to_string(),
                takes_effect: TakesEffect::Session,
                about_io: false,
                receipt: Seen::Inside,
            };
            return Ok((facts, parameter.shown(value).to_string()));
        }
        if is_of_data(name) {
            return Err(format!(
                "{origin}: {name} decides the data, which all runs of a study share; give it one value, and compare two studies"
            ));
        }
        if let Some(placed) = Placed::of(name) {
            return Ok((
                place_facts(name),
                place(placed, value).map_err(|why| format!("{origin}: {name}: {why}"))?,
            ));
        }
        let mut set = Settings::default();
        set.set(name, value, origin).map_err(|error| match &error {
            EngineError::NoSuchSetting { .. } => format!("{error}; {} all", self.settings()),
            _ => error.to_string(),
        })?;
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

    fn measures(&self) -> String {
        let lists = "`plumb list events` or `plumb list statistics`";
        format!(
            "elapsed, db time, db cpu, process cpu, a name of {lists}, a statistic with /s behind it, `share of` an event, `MB/s of` or `ms of` \
             an I/O stream, {}, or two of them as A per B or A minus B",
            assemble::users_measures()
        )
    }

    fn measure(&self, name: &str) -> Option<Measure> {
        if let Some(derived) = derived(name).or_else(|| assemble::users_measure(name)) {
            return Some(derived);
        }
        let event = || Event::ALL.iter().find(|event| event.name() == name);
        let statistic = || Statistic::ALL.iter().find(|statistic| statistic.name() == name);
        let figure = match name {
            "elapsed" => Figure::Elapsed,
            "db time" => Figure::DbTime,
            "db cpu" => Figure::DbCpu,
            "process cpu" => Figure::ProcessCpu,
            _ => match (event(), statistic()) {
                (Some(event), _) => Figure::Event(event.name().to_string()),
                (None, Some(statistic)) if statistic.unit() == Unit::Bytes => Figure::Bytes(name.to_string()),
                (None, Some(_)) if name.ends_with("(usec)") => Figure::Micros(name.to_string()),
                (None, Some(_)) => Figure::Count(name.to_string()),
                (None, None) => {
                    return Join::ALL.into_iter().find_map(|join| {
                        let (first, second) = name.rsplit_once(join.word())?;
                        Measure::both(name, (self.measure(first)?, join, self.measure(second)?))
                    });
                }
            },
        };
        Some(Measure::cost(name, figure))
    }
}

/// Parses a derived measure: `physical reads/s`, `share of direct path write temp`, `MB/s of temp
/// writes`, `ms of temp writes`.
fn derived(name: &str) -> Option<Measure> {
    let stream =
        |name: &str| IoStream::ALL.iter().any(|stream| stream.name() == name).then(|| name.to_string());
    let event = |name: &str| Event::ALL.iter().any(|event| event.name() == name).then(|| name.to_string());
    let of = |word: &str| name.strip_prefix(word).map(str::trim_start);
    if let Some(event) = of("share of ").and_then(event) {
        return Some(Measure::cost(name, Figure::EventShare(event)));
    }
    let counts = |name: &&str| {
        let known = Statistic::ALL.iter().find(|statistic| statistic.name() == *name);
        known.is_some_and(|statistic| statistic.unit() == Unit::Count)
    };
    if let Some(statistic) = name.strip_suffix("/s").filter(counts) {
        return Some(Measure::gain(name, Figure::Rate(statistic.to_string())));
    }
    if let Some(stream) = of("MB/s of ").and_then(stream) {
        return Some(Measure::gain(name, Figure::StreamRate(stream)));
    }
    of("ms of ").and_then(stream).map(|stream| Measure::cost(name, Figure::StreamTime(stream)))
}

/// Returns facts about a word that places files: a database is made for it, and the kernel shows
/// the device of its files.
fn place_facts(name: &str) -> SettingFacts {
    SettingFacts {
        name: name.to_string(),
        takes_effect: TakesEffect::Creation,
        about_io: true,
        receipt: Seen::Outside,
    }
}

/// Returns the directories of a word in the form that a study keeps.
fn place(placed: Placed, value: &str) -> Result<String, String> {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    match names.iter().any(|name| name.is_empty()) {
        true => Err("expected a directory".to_string()),
        false if names.len() > 1 && !placed.takes_several() => {
            Err(format!("expected one directory, found {}", names.len()))
        }
        false => Ok(names.join(",")),
    }
}

/// True if a setting is the engine's, neither a parameter of a workload nor a place.
fn is_of_engine(set: &&Assignment) -> bool {
    parameter(&set.name).is_none() && Placed::of(&set.name).is_none()
}

fn places_of(assignments: &[Assignment]) -> Vec<Assignment> {
    assignments.iter().filter(|set| Placed::of(&set.name).is_some()).cloned().collect()
}

/// Returns the placement of a database's files for these assignments.
fn placement(rest: &Path, assignments: &[Assignment]) -> Placement {
    Placement::of(rest, assignments.iter().map(|set| (set.name.as_str(), set.value.as_str())))
}

/// Returns the default settings with these changes.
fn given(assignments: &[Assignment]) -> Result<Settings, EngineError> {
    let mut settings = Settings::default();
    let engine = assignments.iter().filter(is_of_engine);
    engine.clone().try_for_each(|set| settings.set(&set.name, &set.value, "study"))?;
    Ok(settings)
}

/// Returns the workload parameter of that name, if a study may vary it.
fn parameter(name: &str) -> Option<&'static Parameter> {
    let parameters = WORKLOADS.iter().flat_map(|workload| workload.parameters);
    parameters.into_iter().find(|parameter| parameter.decides == Decides::Work && parameter.is_named(name))
}

/// True if a parameter of that name determines the data of a workload.
fn is_of_data(name: &str) -> bool {
    let mut parameters = WORKLOADS.iter().flat_map(|workload| workload.parameters);
    parameters.any(|parameter| parameter.decides == Decides::Data && parameter.is_named(name))
}

/// Returns the work with those of these assignments that are parameters.
fn work_with(work: &Work, assignments: &[Assignment]) -> Result<Work, StudyError> {
    let refused = |why: String| StudyError::Plan { study: work.workload.name.to_string(), why };
    let mut varied = work.clone();
    let parameters = assignments.iter().filter(|set| parameter(&set.name).is_some());
    parameters.into_iter().try_for_each(|set| varied.set(&set.name, &set.value)).map_err(refused)?;
    Ok(varied)
}

/// Request for a run of the engine.
#[derive(Debug, Serialize, Deserialize)]
struct EngineRun {
    /// Text form of a path ([`path_text`]).
    home: String,
    path: String,
    placed: Vec<Assignment>,
    settings: Vec<Assignment>,
    workload: String,
    /// Parameters as they would be typed.
    parameters: Vec<(String, String)>,
    calibrated: Option<Calibrated>,
    command_line: String,
}

#[derive(Debug)]
struct Database {
    /// Settings it was made with.
    fixed: Vec<Assignment>,
    home: PathBuf,
    calibrated: Option<Calibrated>,
    data_files: Vec<PathBuf>,
    /// Names of the block devices under it.
    devices: Vec<String>,
    _files: Temporary,
}

/// An observer that ignores everything except why sessions wait.
struct Silent(fn(&str));

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
    fn waits(&self, why: &str) {
        (self.0)(why);
    }
}

/// The embedded engine under a path.
pub struct Embedded<'a> {
    path: PathBuf,
    program: PathBuf,
    command_line: String,
    calibration: Option<Calibration>,
    /// Devices under the path, and under every place that an arm names.
    devices: Vec<DeviceDescription>,
    observer: &'a dyn Observer,
    cancel: Cancel,
    /// Name of the databases of this study; `room` is the space they need.
    name: String,
    room: Room,
    /// Bytes of each of their log files, unless a setting says otherwise.
    log_file: u64,
    /// True if each run has a database of its own.
    own_data: bool,
    database: Option<Database>,
    /// Measurements of the device, by the settings that fix a database.
    probed: Vec<(Vec<Assignment>, Option<Calibrated>)>,
    work: Work,
    vocabulary: Vocabulary,
}

impl<'a> Embedded<'a> {
    /// Opens the engine under a path for the runs of a study. Fails if the directory does not
    /// exist, or its device cannot be determined.
    pub fn open(study: &Study, opening: Opening<'a>) -> Result<Embedded<'a>, RunError> {
        let Opening { path, program, command_line, calibration, cancel, observer } = opening;
        let levels = study.factors.iter().flat_map(|factor| &factor.levels);
        let sets = || levels.clone().map(|level| &level.settings).chain([&study.settings]);
        let mut devices = Places::in_one(path).describe()?;
        for placed in sets().map(|set| places_of(set)).filter(|placed| !placed.is_empty()) {
            for device in placement(path, &placed).places().describe()? {
                if devices.iter().all(|known| known.path != device.path) {
                    devices.push(device);
                }
            }
        }
        let first = devices.first().cloned().ok_or_else(|| NamedDirectoryError::Refused {
            argument: "--path",
            path: path.to_path_buf(),
            why: "nothing is known of it".to_string(),
        })?;
        // A calibration of another device, or of one among several, is no limit here.
        let one_device = devices.iter().all(|device| device.mount == first.mount);
        let calibration = calibration.filter(|calibration| one_device && calibration.matches(&first));
        let why = || "it has no workload".to_string();
        let work =
            study.work.clone().ok_or_else(|| StudyError::Plan { study: study.name.clone(), why: why() })?;
        Ok(Embedded {
            path: first.path.clone(),
            program,
            command_line,
            calibration,
            devices,
            observer,
            cancel,
            name: String::new(),
            room: Room::default(),
            log_file: 0,
            own_data: false,
            database: None,
            probed: Vec::new(),
            work,
            vocabulary: study.vocabulary.clone(),
        })
    }

    /// Makes the database for these settings, after removing the previous one.
    fn create(&mut self, fixed: Vec<Assignment>) -> Result<(), RunError> {
        self.database = None;
        let placement = placement(&self.path, &fixed);
        let places = placement.places();
        for (_, path) in places.named() {
            // Left by a killed study; the lock on the bundle proves that it is dead.
            let _ = fs::remove_dir_all(path.join(&self.name));
        }
        let execution = workload::execution(self.work.workload);
        let mut settings = given(&fixed)?;
        execution.apply_defaults(&self.work, &mut settings)?;
        if !settings.is_explicit(Setting::LogFileSize) {
            settings.set("log_file_size", &self.log_file.to_string(), "study")?;
        }
        let cancel = self.cancel.clone();
        let mut files = Temporary::create(&places, &self.name, settings, self.room, cancel, self.observer)?;
        let under = self.under(&places);
        execution.load(&Place::new(files.instance(), &self.work, &under, self.observer))?;
        let calibrated = match self.probed.iter().find(|(of, _)| *of == fixed) {
            Some((_, known)) => known.clone(),
            None => {
                let found = device_probe::calibrate(files.instance(), execution.source())?;
                self.probed.push((fixed.clone(), found.clone()));
                found
            }
        };
        let tablespaces = files.instance().tablespaces().iter();
        let data_files = tablespaces.flat_map(|tablespace| &tablespace.files);
        let data_files = data_files.map(|file| file.file.path().to_path_buf()).collect();
        let blocks = under.iter().filter_map(|device| Some(device.block.as_ref()?.name.clone()));
        let devices = blocks.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let home = files.close();
        self.database = Some(Database { fixed, home, calibrated, data_files, devices, _files: files });
        Ok(())
    }

    fn under(&self, places: &Places<'_>) -> Vec<DeviceDescription> {
        let paths: Vec<PathBuf> =
            places.named().iter().filter_map(|(_, path)| path.canonicalize().ok()).collect();
        self.devices.iter().filter(|device| paths.contains(&device.path)).cloned().collect()
    }

    fn data_files(&self) -> &[PathBuf] {
        self.database.as_ref().map_or(&[], |database| &database.data_files)
    }

    /// Returns the data files, and the log files if any.
    fn files(&self) -> Vec<PathBuf> {
        let homes = self.database.iter().filter_map(|database| fs::read_dir(&database.home).ok());
        let logs = homes.flatten().flatten().map(|entry| entry.path());
        let logs = logs.filter(|file| file.extension().is_some_and(|end| end == "log"));
        self.data_files().iter().cloned().chain(logs).collect()
    }

    /// Returns the largest space that a run of this arm needs, and the size of its log files.
    fn needs(&self, arm: &[Assignment]) -> Result<(Room, u64), RunError> {
        let execution = workload::execution(self.work.workload);
        let (mut settings, work) = (given(arm)?, work_with(&self.work, arm)?);
        execution.apply_defaults(&work, &mut settings)?;
        memory::require(&settings, settings.block_size())?;
        Ok((execution.room(&work, &settings), settings.number(Setting::LogFileSize)))
    }

    /// Rejects arms with equal effect on this machine, such as `io_method=auto` and the method
    /// it chooses. They would be one treatment under two names. Arms with other databases than
    /// the first differ by these.
    fn require_treatments(&self, arms: &[Vec<Assignment>]) -> Result<(), RunError> {
        let Some(database) = &self.database else { return Ok(()) };
        let mut known: Vec<(&Vec<Assignment>, Vec<String>)> = Vec::new();
        for arm in arms.iter().filter(|arm| creation_settings_of(arm, &self.vocabulary) == database.fixed) {
            let (mut settings, work) = (given(arm)?, work_with(&self.work, arm)?);
            workload::execution(work.workload).apply_defaults(&work, &mut settings)?;
            // Runs of an arm that cannot be opened fail with the reason.
            let Ok(mut effective) = self.effective(&database.home, settings) else { continue };
            effective.push(work.arguments());
            if let Some((same, _)) = known.iter().find(|(_, before)| *before == effective) {
                let only = |of: &[Assignment], other: &[Assignment]| {
                    let words = of.iter().filter(|set| !other.contains(set));
                    words.map(|set| format!("{}={}", set.name, set.value)).collect::<Vec<_>>().join(" ")
                };
                return Err(StudyError::OneTreatment { one: only(same, arm), other: only(arm, same) }.into());
            }
            known.push((arm, effective));
        }
        Ok(())
    }

    /// Returns the effective values of these settings in a database, and in its log
    /// if the work writes one.
    fn effective(&self, home: &Path, settings: Settings) -> Result<Vec<String>, EngineError> {
        let instance = Instance::open(home, settings, Cancel::default())?;
        if !workload::execution(self.work.workload).logs() {
            return settings::effective(&instance, None);
        }
        let place = Place::new(&instance, &self.work, &self.devices, self.observer);
        settings::effective(&instance, Some(place.transactions()?.log()))
    }

    fn request(&self, database: &Database, given: &[Assignment]) -> Result<EngineRun, StudyError> {
        let work = work_with(&self.work, given)?;
        let settings: Vec<Assignment> = given.iter().filter(is_of_engine).cloned().collect();
        let placed = places_of(given);
        let set: String = settings.iter().map(|set| format!(" --set {}={}", set.name, set.value)).collect();
        let rest = if placed.iter().any(|set| set.name == "path") {
            String::new()
        } else {
            format!(" --path {}", self.path.display())
        };
        let apart: String =
            placed.iter().map(|set| format!(" --{} {}", set.name.replace('_', "-"), set.value)).collect();
        let command_line = format!("plumb run {}{rest}{apart}{set}", work.arguments());
        Ok(EngineRun {
            home: path_text(&database.home),
            path: path_text(&self.path),
            placed,
            settings,
            workload: work.workload.name.to_string(),
            parameters: work.values().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            calibrated: database.calibrated.clone(),
            command_line,
        })
    }
}

impl Target for Embedded<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        let why = "the settings of each arm decide it; its runs' records say which";
        let devices = self.devices.iter().map(|device| Device::of(device, "by arm", why)).collect();
        let target = "the embedded engine".to_string();
        Ok(Environment::now(target, devices, self.calibration.as_ref(), &self.command_line))
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        let needs =
            preparation.arms.iter().map(|arm| self.needs(arm)).collect::<Result<Vec<_>, RunError>>()?;
        let (rooms, log_files): (Vec<Room>, Vec<u64>) = needs.into_iter().unzip();
        (self.name, self.room) = (preparation.name.to_string(), Room::largest(&rooms));
        self.log_file = log_files.into_iter().max().unwrap_or(0);
        let fixed = |arm: &Vec<Assignment>| creation_settings_of(arm, &self.vocabulary);
        let Some(first) = preparation.arms.first().map(fixed) else { return Ok(()) };
        self.own_data = preparation.arms.iter().any(|arm| fixed(arm) != first);
        self.create(first)?;
        if !preparation.expects_same {
            self.require_treatments(preparation.arms)?;
        }
        Ok(())
    }

    fn ready(&mut self, settings: &[Assignment]) -> Result<Settled, StudyError> {
        if self.own_data {
            self.create(creation_settings_of(settings, &self.vocabulary))?;
        }
        let devices = self.database.as_ref().map_or(&[][..], |database| &database.devices);
        Ok(Settled { own_data: self.own_data, ..settle::settle(&self.files(), devices) })
    }

    fn sing(&self) -> Canary {
        let size = |file: &Path| fs::metadata(file).map_or(0, |file| file.len());
        Canary::sing(self.data_files().iter().max_by_key(|file| size(file)).map(PathBuf::as_path))
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        let fixed = creation_settings_of(settings, &self.vocabulary);
        let Some(database) = self.database.as_ref().filter(|database| database.fixed == fixed) else {
            return Err(NoRecord::Failed("no database was made with its settings".to_string().into()));
        };
        let request =
            self.request(database, settings).map_err(|error| NoRecord::Failed(error.to_string().into()))?;
        let waits = |why: &str| self.observer.waits(why);
        child::run(&self.program, &Request::to(Engine.target(), &request)?, cancel, &waits)
    }
}

impl Runner for Engine {
    fn runner(&self) -> &'static str {
        self.target()
    }

    fn make(&self, run: Value, say: fn(&str)) -> Result<Record, Failure> {
        let run: EngineRun = serde_json::from_value(run).map_err(|error| error.to_string())?;
        execute(&run, say).map_err(|error| error.to_string().into())
    }
}

/// Makes a run; `say` receives the reasons why sessions wait.
fn execute(request: &EngineRun, say: fn(&str)) -> Result<Record, RunError> {
    let (home, path) = (path_of_text(&request.home), path_of_text(&request.path));
    let placement = placement(&path, &request.placed);
    let devices = placement.places().describe()?;
    let work = work_of(request)?;
    let mut settings = given(&request.settings)?;
    workload::execution(work.workload).apply_defaults(&work, &mut settings)?;
    let instance = Instance::open(&home, settings, Cancel::default())?;
    let silent = Silent(say);
    let place = Place::new(&instance, &work, &devices, &silent);
    let ran_with = (request.command_line.as_str(), request.calibrated.clone());
    workload::repeat(&place, &placement.places(), &request.placed, ran_with)
}

fn work_of(request: &EngineRun) -> Result<Work, StudyError> {
    let refused = |why: String| StudyError::Plan { study: request.workload.clone(), why };
    let workload =
        Workload::find(&request.workload).ok_or_else(|| refused("no such workload".to_string()))?;
    let mut work = Work::of(workload);
    request.parameters.iter().try_for_each(|(name, value)| work.set(name, value)).map_err(refused)?;
    Ok(work)
}
