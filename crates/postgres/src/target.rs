//! Servers of plumb's own as a target of a study.
//!
//! A data directory is made and loaded once for all arms, unless they differ in what is fixed when
//! it is made: the server's build, checksums, the size of the log's files. Then each run has one of
//! its own, because the place of its files would pass for the effect of the setting.
//!
//! A workload that writes, too, has a directory of its own for each run. It is a copy of a golden
//! one, which was loaded once for each set of such settings. The hash of each copy is compared with
//! that of the golden one, and is a check of the run's record.

use crate::PostgresError;
use crate::cluster::{Cluster, Creation};
use crate::ending::end_server;
use crate::explain;
use crate::golden::DirectoryHash;
use crate::installation::Installation;
use crate::receipts::{is_on, rule_of};
use crate::run::{PostgresRun, WORDS, Way, of, options};
use crate::session::ServerSession;
use crate::vocabulary::{NAME, Postgres};
use crate::workload::{self, ServerWork, parameter};
use plumb_events::{Cancel, clock};
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory;
use plumb_record::{Check, Device, Record, RequestSizes};
use plumb_study::StudyError;
use plumb_study::bundle::{Environment, Settled};
use plumb_study::canary::Canary;
use plumb_study::definition::Study;
use plumb_study::settle;
use plumb_study::targets::child::{self, Request, Runner};
use plumb_study::targets::{
    ExplainedPlan, Failure, NoRecord, Opening, Preparation, Target, creation_settings_of,
};
use plumb_study::vocabulary::{Assignment, Vocabulary};
use plumb_units::{Bytes, parse_size, path_of_text, path_text};
use plumb_workload::Work;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings of a load: nothing needs to survive a crash of it.
const LOADING: [(&str, &str); 5] = [
    ("fsync", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "4GB"),
    ("autovacuum", "off"),
];
/// Start of the names of studies' files, which the directory's own prefix replaces.
const STUDY: &str = "plumb-study-";

struct Loaded {
    /// Settings it was made with.
    fixed: Vec<Assignment>,
    cluster: Cluster,
    /// `None` if all runs share the directory.
    golden: Option<DirectoryHash>,
}

pub struct PostgresTarget<'a> {
    opening: Opening<'a>,
    /// The directory of the opening, then those that arms name as `path`, each with its device.
    places: Vec<(String, DeviceDescription)>,
    study: String,
    vocabulary: Vocabulary,
    work: Work,
    /// The server, unless arms differ in it.
    installation: Installation,
    installations: Vec<Installation>,
    id: String,
    /// True if each run has a data directory of its own.
    own_data: bool,
    /// One for each set of settings that are fixed when a directory is made.
    loaded: Vec<Loaded>,
    /// Result of comparing the next run's data with the golden copy.
    state: Option<Check>,
    tracing: Option<&'a dyn RequestTracing>,
}

/// A tracer of requests, which is no part of this crate.
pub trait RequestTracing {
    /// Does the work, and returns the sizes of the requests to files below a directory meanwhile:
    /// those of a process and of processes that it makes.
    fn during(&self, pid: u32, below: &Path, work: &mut dyn FnMut()) -> RequestSizes;
}

impl<'a> PostgresTarget<'a> {
    /// Opens servers under a path for the runs of a study.
    ///
    /// # Errors
    /// If the path or a server is missing, or a server lacks a setting.
    pub fn open(study: &Study, opening: Opening<'a>) -> Result<PostgresTarget<'a>, PostgresError> {
        let places = places(study, opening.path)?;
        let mut named: Vec<&str> =
            study.all_settings().filter(|set| set.name == WORDS[0]).map(|set| set.value.as_str()).collect();
        named.sort_unstable();
        named.dedup();
        let installations = match named.is_empty() {
            true => vec![Installation::find(None)?],
            false => {
                named.into_iter().map(|name| Installation::find(Some(name))).collect::<Result<_, _>>()?
            }
        };
        for installation in &installations {
            study.all_settings().try_for_each(|set| require_version(installation, set))?;
        }
        let work = study.work.clone();
        let work =
            work.ok_or_else(|| PostgresError::Unfit(format!("study {}: it has no workload", study.name)))?;
        workload::require(&work)?;
        let clients = workload::execution(work.workload.name)?.clients();
        for (installation, client) in
            installations.iter().flat_map(|server| clients.iter().map(move |client| (server, client)))
        {
            installation.client(client)?;
        }
        Ok(PostgresTarget {
            opening,
            places,
            study: study.name.clone(),
            vocabulary: study.vocabulary.clone(),
            work,
            installation: installations[0].clone(),
            installations,
            id: String::new(),
            own_data: false,
            loaded: Vec::new(),
            state: None,
            tracing: None,
        })
    }

    /// Traces the requests of the execution whose plan each arm keeps.
    #[must_use]
    pub fn traced_by(self, tracing: &'a dyn RequestTracing) -> Self {
        Self { tracing: Some(tracing), ..self }
    }

    fn execution(&self) -> Result<&'static dyn ServerWork, PostgresError> {
        workload::execution(self.work.workload.name)
    }

    fn installation_of(&self, settings: &[Assignment]) -> Result<Installation, PostgresError> {
        match settings.iter().find(|set| set.name == WORDS[0]) {
            Some(set) => Installation::find(Some(&set.value)),
            None => Ok(self.installation.clone()),
        }
    }

    /// Returns the device of the data with these settings.
    fn device_of(&self, settings: &[Assignment]) -> &DeviceDescription {
        let path = settings.iter().find(|set| set.name == WORDS[2]);
        let named = path.and_then(|path| self.places.iter().find(|(place, _)| *place == path.value));
        &named.unwrap_or(&self.places[0]).1
    }

    fn require_room(&self, device: &DeviceDescription) -> Result<(), PostgresError> {
        let copies = if self.own_data { 2 } else { 1 };
        let needed = Bytes(self.execution()?.room(&self.work).0.saturating_mul(copies));
        let free = device.space.free;
        match free >= needed {
            true => Ok(()),
            false => Err(PostgresError::NoRoom { path: device.path.clone(), needed, free }),
        }
    }

    /// Makes and loads a data directory for these settings. An interrupt ends it in any step, with
    /// an error of that step.
    fn create(&mut self, fixed: Vec<Assignment>) -> Result<(), PostgresError> {
        let made = self.make(fixed);
        self.opening.cancel.check()?;
        made
    }

    fn make(&mut self, fixed: Vec<Assignment>) -> Result<(), PostgresError> {
        let device = self.device_of(&fixed);
        self.require_room(device)?;
        let installation = self.installation_of(&fixed)?;
        let id = match self.loaded.len() {
            0 => self.id.clone(),
            number => format!("{}-{number}", self.id),
        };
        let cluster = Cluster::create(&device.path, &id, &installation, &creation(&fixed)?)?;
        self.opening.observer.made(cluster.home());
        let given = LOADING.map(|(name, value)| (name.to_string(), value.to_string()));
        let server = cluster.borrowed().start(&given, &self.opening.cancel)?;
        let mut session = ServerSession::connect(&server, "plumb load")?;
        self.execution()?.load(&mut session, &self.work, &self.opening.cancel)?;
        session.run("a checkpoint is taken", "checkpoint")?;
        drop(session);
        server.stop()?;
        let golden = self.own_data.then(|| cluster.keep()).transpose()?;
        if golden.is_some() {
            cluster.renew()?;
        }
        self.loaded.push(Loaded { fixed, cluster, golden });
        Ok(())
    }

    fn loaded_for(&self, settings: &[Assignment]) -> Option<&Loaded> {
        let fixed = creation_settings_of(settings, &self.vocabulary);
        self.loaded.iter().find(|loaded| loaded.fixed == fixed)
    }

    /// Makes the data of the next run, if runs have their own, and proves that they are the golden
    /// copy's.
    fn renew(&mut self, settings: &[Assignment]) -> Result<(), PostgresError> {
        let Some(Loaded { cluster, golden: Some(golden), .. }) = self.loaded_for(settings) else {
            return Ok(());
        };
        let begin = clock::now();
        let found = cluster.renew()?;
        let detail = match found == *golden {
            true => format!("as they were loaded: {found}"),
            false => format!("{found}; loaded were {golden}"),
        };
        let elapsed_ns = clock::now().saturating_sub(begin).0;
        let passed = found == *golden;
        self.state = Some(Check { name: "data before the run".to_string(), passed, detail, elapsed_ns });
        Ok(())
    }

    /// Rejects arms whose settings the server makes the same of, such as a value and its default.
    fn require_treatments(&self, arms: &[Vec<Assignment>]) -> Result<(), StudyError> {
        self.loaded.iter().try_for_each(|loaded| self.require_treatments_of(loaded, arms))
    }

    fn require_treatments_of(&self, loaded: &Loaded, arms: &[Vec<Assignment>]) -> Result<(), StudyError> {
        let Loaded { fixed, cluster, .. } = loaded;
        let borrowed = cluster.borrowed();
        let is_server = |name: &str| parameter(name).is_none() && !WORDS.contains(&name) && !is_fixed(name);
        let mut names: Vec<&str> =
            arms.iter().flatten().map(|set| set.name.as_str()).filter(|name| is_server(name)).collect();
        names.sort_unstable();
        names.dedup();
        let mut known: Vec<(&Vec<Assignment>, Vec<String>)> = Vec::new();
        for arm in arms.iter().filter(|arm| creation_settings_of(arm, &self.vocabulary) == *fixed) {
            let options = options(self.execution()?, &cluster.installation, &of_server(arm));
            let given: Vec<_> =
                of(&options, Way::Start).into_iter().chain(of(&options, Way::Session)).collect();
            let mut effective = borrowed.effective(&given, &names)?;
            let others = arm.iter().filter(|set| !is_server(&set.name));
            effective.extend(others.map(|set| format!("{}={}", set.name, set.value)));
            if let Some((same, _)) = known.iter().find(|(_, before)| *before == effective) {
                let only = |of: &[Assignment], other: &[Assignment]| {
                    let words = of.iter().filter(|set| !other.contains(set));
                    let words: Vec<String> = words.map(|set| format!("{}={}", set.name, set.value)).collect();
                    if words.is_empty() { "the server's default".to_string() } else { words.join(" ") }
                };
                return Err(StudyError::OneTreatment { one: only(same, arm), other: only(arm, same) });
            }
            known.push((arm, effective));
        }
        Ok(())
    }

    fn request(&self, loaded: &Loaded, settings: &[Assignment]) -> Result<PostgresRun, PostgresError> {
        let mut work = self.work.clone();
        let parameters = settings.iter().filter(|set| parameter(&set.name).is_some());
        parameters
            .into_iter()
            .try_for_each(|set| work.set(&set.name, &set.value))
            .map_err(PostgresError::Unfit)?;
        Ok(PostgresRun {
            home: path_text(loaded.cluster.home()),
            path: path_text(&self.device_of(settings).path),
            server: path_text(&loaded.cluster.installation.directory),
            settings: of_server(settings),
            workload: work.workload.name.to_string(),
            parameters: work.values().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            command_line: self.opening.command_line.clone(),
        })
    }

    /// Returns the plan of the work on a server that is started for it.
    fn plan(&self, settings: &[Assignment], cancel: &Cancel) -> Result<Option<ExplainedPlan>, PostgresError> {
        let Some(loaded) = self.loaded_for(settings) else { return Ok(None) };
        let run = self.request(loaded, settings)?;
        let execution = self.execution()?;
        let Some(query) = execution.query(&run.work()?)? else { return Ok(None) };
        let borrowed = loaded.cluster.borrowed();
        let options = options(execution, &borrowed.installation, &run.settings);
        let server = borrowed.start(&of(&options, Way::Start), cancel)?;
        let (session, mut made) = (of(&options, Way::Session), None);
        let mut work = || made = Some(explain::of_work(&server, &query, &session));
        let sizes = self.tracing.map(|tracing| {
            let pid = server.pid().as_raw_nonzero().get().unsigned_abs();
            tracing.during(pid, &loaded.cluster.data(), &mut work)
        });
        if sizes.is_none() {
            work();
        }
        let plan = made.transpose()?;
        server.stop()?;
        Ok(plan.map(|plan| ExplainedPlan { plan, sizes }))
    }
}

/// Returns the directory of a study with those that its arms name, each with its device.
fn places(study: &Study, path: &Path) -> Result<Vec<(String, DeviceDescription)>, PostgresError> {
    let mut places: Vec<(String, DeviceDescription)> = Vec::new();
    let named = study.all_settings().filter(|set| set.name == WORDS[2]).map(|set| set.value.clone());
    for place in std::iter::once(path_text(path)).chain(named) {
        if places.iter().all(|(known, _)| *known != place) {
            let directory = named_directory::require("--path", &path_of_text(&place))?;
            places.push((place, plumb_io::describe_device(&directory)?));
        }
    }
    Ok(places)
}

/// Returns the settings without parameters of the workload.
fn of_server(settings: &[Assignment]) -> Vec<Assignment> {
    settings.iter().filter(|set| parameter(&set.name).is_none()).cloned().collect()
}

/// True for a setting that is made with the data directory.
fn is_fixed(name: &str) -> bool {
    rule_of(name).is_some_and(|rule| rule.takes_effect <= plumb_study::vocabulary::TakesEffect::Offline)
}

fn require_version(installation: &Installation, set: &Assignment) -> Result<(), PostgresError> {
    match rule_of(&set.name) {
        Some(rule) if installation.major < rule.since => Err(PostgresError::NoSetting {
            setting: set.name.clone(),
            since: rule.since,
            directory: installation.directory.clone(),
            found: installation.major,
        }),
        _ => Ok(()),
    }
}

fn creation(fixed: &[Assignment]) -> Result<Creation, PostgresError> {
    let value = |name: &str| fixed.iter().find(|set| set.name == name).map(|set| set.value.as_str());
    let size = |text: &str| {
        let bytes = parse_size(text)
            .ok()
            .filter(|bytes| bytes % Bytes::M == 0 && (bytes / Bytes::M).is_power_of_two());
        bytes.map(|bytes| bytes / Bytes::M).ok_or_else(|| {
            PostgresError::Unfit(format!(
                "wal_segment_size = {text}: expected a power of two from 1MB to 1GB, as in 16MB"
            ))
        })
    };
    Ok(Creation {
        checksums: value("data_checksums").map(is_on),
        segment_megabytes: value("wal_segment_size").map(size).transpose()?,
    })
}

impl Target for PostgresTarget<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        let device = |(_, device): &(_, _)| Device::of(device, "by the server", "it opens its files itself");
        let devices = self.places.iter().map(device).collect();
        let servers: Vec<String> = self.installations.iter().map(Installation::describe).collect();
        // One of another device, or of one among several, is no limit here.
        let calibration = self.opening.calibration.as_ref();
        let calibration =
            calibration.filter(|found| self.places.iter().all(|(_, device)| found.matches(device)));
        Ok(Environment::now(servers.join("; "), devices, calibration, &self.opening.command_line))
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        self.opening.observer.begins();
        self.id = preparation.name.strip_prefix(STUDY).unwrap_or(preparation.name).to_string();
        let mut fixed: Vec<Vec<Assignment>> = Vec::new();
        for arm in preparation.arms {
            let ours = creation_settings_of(arm, &self.vocabulary);
            if !fixed.contains(&ours) {
                fixed.push(ours);
            }
        }
        self.own_data = fixed.len() > 1 || self.execution()?.writes();
        fixed.into_iter().try_for_each(|fixed| self.create(fixed))?;
        if !preparation.expects_same {
            self.require_treatments(preparation.arms)?;
        }
        Ok(())
    }

    fn ready(&mut self, settings: &[Assignment]) -> Result<Settled, StudyError> {
        self.renew(settings)?;
        let files = self.loaded_for(settings).map(|loaded| loaded.cluster.borrowed().files());
        let files = files.unwrap_or_default();
        let block = self.device_of(settings).block.as_ref();
        let devices: Vec<String> = block.map(|block| block.name.clone()).into_iter().collect();
        Ok(Settled { own_data: self.own_data, ..settle::settle(&files, &devices) })
    }

    fn sing(&self) -> Canary {
        let files = self.loaded.first().map(|loaded| loaded.cluster.borrowed().files()).unwrap_or_default();
        let size = |file: &PathBuf| fs::metadata(file).map_or(0, |file| file.len());
        Canary::sing(files.iter().max_by_key(|file| size(file)).map(PathBuf::as_path))
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        let Some(loaded) = self.loaded_for(settings) else {
            let why = format!("study {}: no data directory was made with its settings", self.study);
            return Err(NoRecord::Failed(why.into()));
        };
        let request = self.request(loaded, settings).map_err(|error| NoRecord::Failed(error.into()))?;
        let waits = |why: &str| self.opening.observer.waits(why);
        let mut made = child::run(&self.opening.program, &Request::to(NAME, &request)?, cancel, &waits);
        // A run that was killed may have left its server.
        let _ = end_server(&loaded.cluster.data());
        if let (Ok(record), Some(state)) = (&mut made, self.state.take()) {
            record.checks.push(state);
        }
        made
    }

    fn explain(
        &mut self,
        settings: &[Assignment],
        cancel: &Cancel,
    ) -> Result<Option<ExplainedPlan>, NoRecord> {
        no_record(self.plan(settings, cancel), cancel)
    }
}

/// Returns a result of a step that an interrupt may have ended.
pub(crate) fn no_record<T>(made: Result<T, PostgresError>, cancel: &Cancel) -> Result<T, NoRecord> {
    made.map_err(|error| match cancel.check() {
        Err(_) => NoRecord::Interrupted,
        Ok(()) => NoRecord::Failed(error.into()),
    })
}

impl Runner for Postgres {
    fn runner(&self) -> &'static str {
        NAME
    }

    fn make(&self, run: Value, _: fn(&str)) -> Result<Record, Failure> {
        let run: PostgresRun = serde_json::from_value(run).map_err(|error| error.to_string())?;
        Ok(run.execute()?)
    }

    fn abandon(&self, run: &Value) {
        if let Ok(run) = serde_json::from_value::<PostgresRun>(run.clone()) {
            let _ = end_server(&path_of_text(&run.home).join("data"));
        }
    }
}
