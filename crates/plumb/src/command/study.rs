//! `plumb study`: a designed experiment, from its file to its verdicts.

use super::file_systems::{self, Required};
use super::{ad_hoc, of_workload, places, suite, visit};
use crate::arguments::{self, PrintForm, Study, StudyFormat};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::{Audience, ProgressObserver, Watch};
use crate::targets::{self, KINDS};
use crate::{bundle, calibrate, command_line, output};
use plumb_events::clock;
use plumb_record::outside;
use plumb_report::picture::picture;
use plumb_report::{Document, markdown};
use plumb_study::StudyError;
use plumb_study::analysis::result::Analysis;
use plumb_study::bundle::{Bundle, Environment, REPORTS, Reservation, Stop, write_new};
use plumb_study::definition::{self, LeftOut, catalog};
use plumb_study::pilot::{self, Sought};
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::{Opening, Target};
use plumb_study::{execution, report};
use plumb_units::{Nanos, nearest, path_of_text};
use plumb_workload::Workload;
use std::path::{Path, PathBuf};

/// Runs a study, resumes one, or runs those of a suite. A verdict of any kind is
/// an outcome, not an error.
pub fn run(arguments: &Study) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    match arguments.study.as_deref().and_then(catalog::suite) {
        Some(suite) if arguments.factor.is_empty() => suite::run(arguments, suite, &interrupt),
        _ => {
            let (analysis, directory) = one(arguments, arguments.conduct.bundle.as_deref(), &interrupt)?;
            show(arguments, &directory, &analysis)?;
            Ok(analysis.standing_with(arguments.conduct.open()).map_or(Outcome::Fine, Outcome::Stands))
        }
    }
}

/// Runs or resumes a study; returns its analysis and the directory of its bundle.
pub(super) fn one(
    arguments: &Study,
    bundle: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<(Analysis, PathBuf), Failure> {
    // Takes the bundle's lock first, so that neither another process's writes nor
    // a refusal below touch it.
    let resumed = resumed(arguments)?.map(|directory| Bundle::open(&directory, KINDS)).transpose()?;
    visit::require_same_place(arguments, resumed.as_ref())?;
    let file_systems = file_systems::require(arguments, resumed.as_ref().map(Bundle::directory))?;
    let plan = match &resumed {
        Some(bundle) => the_same(arguments, bundle)?,
        None => plan(arguments, None)?,
    };
    require_place(arguments, &plan.study)?;
    plan.require_room(arguments.conduct.budget)?;
    plan.too_short().iter().for_each(|what| output::remark(&format!("{what}\n")));
    let visit = visit::ask(arguments, &plan.study)?;
    let to_go_on = visit.as_ref().map_or(String::new(), |visit| visit::begun(visit, arguments, interrupt));
    let path = path(arguments, resumed.as_ref());
    let place = match resumed {
        Some(bundle) => Place::Held(bundle),
        None => Place::reserve(bundle, &plan, interrupt)?,
    };
    let _mounted = file_systems.make(interrupt)?;
    let calibration = calibrate::stored(&path)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::run(format!("cannot tell which program this is: {error}")))?;
    let audience =
        if arguments.conduct.shown() != PrintForm::Text { Audience::Nobody } else { Audience::Terminal };
    let watch = Watch::start(audience);
    let progress = ProgressObserver { watch: &watch, interrupt };
    let opening = Opening {
        path: &path,
        program,
        command_line: command_line::typed(),
        calibration,
        cancel: interrupt.cancel(),
        observer: &progress,
    };
    let mut target = targets::open(&plan.study, visit, opening)?;
    let budget = arguments.conduct.budget;
    let (plan, budget) = match arguments.conduct.find {
        Some(effect) => sized(&mut *target, plan, Sought { effect, budget }, interrupt, &progress)?,
        None => (plan, budget),
    };
    let mut bundle = place.begin(&plan, environment(&mut *target, &plan)?)?;
    let directory = bundle.directory().to_path_buf();
    let named = command_line::quoted(&directory.display().to_string());
    interrupt.say(file_systems.interrupted(&(named + &to_go_on)));
    let ended = to_its_end(&mut bundle, &mut *target, budget, &file_systems, interrupt, &progress);
    undo(target, interrupt);
    let ended = match arguments.factor.is_empty() {
        true => ended,
        false => ended.map_err(ad_hoc::with_options),
    };
    drop(watch);
    let stop = match ended {
        Ok(stop) => stop,
        Err(error) => return Err(given_up(bundle, error, interrupt)),
    };
    let kept = |error| Failure { resumable: interrupt.is_resumable(), ..Failure::from(error) };
    let context = report::publish(&mut bundle, plumb_pages::study::rendered).map_err(kept)?;
    drop(bundle);
    match stop {
        Stop::Interrupted => Err(interrupt.failure()),
        _ => Ok((context, directory)),
    }
}

/// Ends a target, and says what stays of its changes.
fn undo(mut target: Box<dyn Target + '_>, interrupt: &Interrupt) {
    target.end().iter().for_each(|line| output::remark(&format!("{line}\n")));
    drop(target);
    interrupt.has_undone();
}

/// Fails on `--path` if no word of the command or setting contains `{path}`.
fn require_place(arguments: &Study, study: &definition::Study) -> Result<(), Failure> {
    let settings: Vec<_> = study.all_settings().collect();
    if arguments.conduct.path.is_empty() || study.vocabulary.has_place(&settings) {
        return Ok(());
    }
    Err(Failure::usage(
        "--path: no command of the study has the word {path} for it; put {path} where the directory is meant, or leave \
         --path out",
    ))
}

/// Returns the error that ended a study, and discards a new bundle without a run. An interruption
/// between two runs has its own message.
fn given_up(bundle: Bundle, error: Failure, interrupt: &Interrupt) -> Failure {
    if bundle.contents().runs.is_empty() {
        // A bundle that existed before stays unchanged.
        bundle.discard();
        return error;
    }
    match interrupt.cancel().check() {
        Err(_) => interrupt.failure(),
        Ok(()) => Failure { resumable: interrupt.is_resumable(), ..error },
    }
}

/// Runs the remaining runs of a study.
fn to_its_end(
    bundle: &mut Bundle,
    target: &mut dyn Target,
    budget: Option<Nanos>,
    file_systems: &Required,
    interrupt: &Interrupt,
    progress: &ProgressObserver<'_>,
) -> Result<Stop, Failure> {
    interrupt.reserved(bundle.reservation());
    if !file_systems.are_made() {
        interrupt.leaves_resumable();
    }
    execution::execute(bundle, target, budget, &interrupt.cancel(), progress)
        .map_err(|error| file_systems.without_resume(error).into())
}

/// Returns the plan with the blocks that a pilot of its reference suggests, and the remaining
/// budget. Reports their time before the study starts.
fn sized(
    target: &mut dyn Target,
    plan: Plan,
    sought: Sought,
    interrupt: &Interrupt,
    progress: &ProgressObserver<'_>,
) -> Result<(Plan, Option<Nanos>), Failure> {
    let found = pilot::pilot(target, &plan, sought, &interrupt.cancel(), progress)?;
    let pilot = found.ok_or_else(|| interrupt.failure())?;
    output::remark(&format!("{pilot}\n"));
    let options = PlanOptions { blocks: Some(pilot.blocks), rows: None };
    let (until, seed) = (plan.until, plan.schedule.seed);
    let study = definition::Study { sought: sought.effect, ..plan.study };
    let plan = Plan::new(study, options, until, seed)?;
    let left = sought.budget.map(|budget| budget.saturating_sub(pilot.spent));
    plan.require_room(left)?;
    Ok((plan, left))
}

/// Returns the bundle to continue, from `--resume DIR` or `--resume --bundle DIR`.
fn resumed(arguments: &Study) -> Result<Option<PathBuf>, Failure> {
    match (&arguments.resume, &arguments.conduct.bundle) {
        (None, _) => Ok(None),
        (Some(Some(directory)), None) | (Some(None), Some(directory)) => Ok(Some(directory.clone())),
        (Some(Some(one)), Some(two)) if one == two => Ok(Some(one.clone())),
        (Some(Some(_)), Some(_)) => Err(Failure::usage("--resume and --bundle name two bundles; name one")),
        (Some(None), None) => Err(Failure::usage(
            "--resume: which study? name its bundle, as in --resume plumb-reports/study-large-sort-20261120-210405",
        )),
    }
}

fn find(name: &str, arguments: &Study) -> Result<definition::Study, Failure> {
    let file = Path::new(name);
    let is_file = name.ends_with(".toml") || name.contains('/') || file.is_file();
    if is_file {
        let text = outside::text(file).map_err(|error| {
            let cure = plumb_io::cure(&error, file, "name a study's file that may be read");
            Failure::run(format!("cannot read the study {name}: {error}{cure}"))
        })?;
        return in_places(name, &text, arguments);
    }
    let Some((file, text)) = catalog::text(name) else {
        if Workload::find(name).is_some() {
            return Err(Failure::usage(format!(
                "{name} is a workload, and a study varies something: `plumb study {name} --factor \
                 filesystemio_options=none,setall`; `plumb list studies` shows those that come with the program"
            )));
        }
        let known = catalog::FILES.iter().filter_map(|(file, _)| file.strip_suffix(".toml"));
        let near = nearest(name, known.chain(catalog::SUITES.iter().map(|suite| suite.name)));
        let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
        return Err(Failure::usage(format!(
            "there is no study {name:?}{near}; `plumb list studies` shows them, and a study of your own is a file NAME.toml"
        )));
    };
    in_places(file, text, arguments)
}

/// Returns the study of a file's text, on the target and in the places of the arguments.
fn in_places(file: &str, text: &str, arguments: &Study) -> Result<definition::Study, Failure> {
    let mut draft = definition::Draft::of_text(file, text).map_err(StudyError::from)?;
    if let Some(target) = &arguments.target {
        if draft.has_key("command") {
            return Err(Failure::usage(format!(
                "--target: {file} runs commands, which find a server by PGHOST and PGPORT; leave --target out"
            )));
        }
        let kind = if visit::is_address(target) { "postgres" } else { target.as_str() };
        draft.set("--target", "target", kind);
    }
    draft.replace_for(KINDS).map_err(StudyError::from)?;
    if let Some(server) = &arguments.server {
        draft.set_in("--server", "settings", "server", server.as_str());
    }
    for (option, name, value) in &arguments.parameters.given {
        let origin = format!("--{option} {value}");
        if !draft.replace_in(&origin, "settings", name, value) {
            let file = file.trim_end_matches(".toml");
            return Err(Failure::usage(format!(
                "{origin}: the study {file} has no {name} under [settings]; leave it out"
            )));
        }
    }
    places::fill(&mut draft, &arguments.conduct.path)?;
    Ok(draft.check(KINDS).map_err(StudyError::from)?)
}

/// Returns the plan of the arguments; an earlier plan fills the rest. Levels that this machine
/// lacks are reported and left out.
fn plan(arguments: &Study, earlier: Option<&Plan>) -> Result<Plan, Failure> {
    let (plan, left_out) = possible_plan(arguments, earlier)?;
    left_out.iter().for_each(|level| output::remark(&format!("{level}\n")));
    Ok(plan)
}

/// Returns the plan of what this machine can run, and the levels that it cannot.
pub(super) fn possible_plan(
    arguments: &Study,
    earlier: Option<&Plan>,
) -> Result<(Plan, Vec<LeftOut>), Failure> {
    let study = match &arguments.command {
        Some(_) if arguments.conduct.path.len() > 1 => {
            let why = "--path is given twice, and a command has one; make a place a --factor of the command instead";
            return Err(Failure::usage(why));
        }
        Some(command) => ad_hoc::study(command, &arguments.factor, &arguments.around)?,
        None if !arguments.factor.is_empty() => of_workload::study(arguments)?,
        None => find(arguments.study.as_deref().unwrap_or_default(), arguments)?,
    };
    // Programs of this machine say nothing about a server elsewhere. It refuses what it lacks.
    let (study, left_out) = match arguments.target.as_deref().is_some_and(visit::is_address) {
        true => (study, Vec::new()),
        false => study.possible().map_err(StudyError::from)?,
    };
    let options = PlanOptions {
        rows: arguments.rows.or(earlier.and_then(|plan| other_rows(&plan.study, &study))),
        blocks: arguments.conduct.blocks.map(usize::from).or(earlier.map(|plan| plan.study.blocks)),
    };
    let until = match arguments.until {
        Some(arguments::Until::Blocks) => Until::Blocks,
        Some(arguments::Until::Decided) => Until::Decided,
        None => earlier.map_or(Until::Blocks, |plan| plan.until),
    };
    // Nine digits at most, so that a user can type it.
    let from_clock = || clock::wall().as_nanos() as u64 % 1_000_000_000;
    let seed = arguments.conduct.seed.or(earlier.map(|plan| plan.schedule.seed)).unwrap_or_else(from_clock);
    Ok((Plan::new(study, options, until, seed)?, left_out))
}

/// Returns the rows of a study if they differ from its file's; none if it has no such parameter.
fn other_rows(kept: &definition::Study, file: &definition::Study) -> Option<u64> {
    let rows = kept.work.as_ref()?.value("rows")?;
    (kept.rows() != file.rows()).then_some(rows)
}

/// Returns the plan of a bundle; fails if the arguments ask for another.
fn the_same(arguments: &Study, bundle: &Bundle) -> Result<Plan, Failure> {
    let mut kept = bundle.contents().plan.clone();
    let refuse =
        |why: String| Failure::from(StudyError::Resume { path: bundle.directory().to_path_buf(), why });
    if arguments.study.is_some() || arguments.command.is_some() {
        let asked = plan(arguments, Some(&kept))?;
        if asked.study.hash() != kept.study.hash() {
            return Err(refuse(format!("its study {} is not the one that is asked for", kept.study.name)));
        }
        // A study file has the values of secrets, but a bundle has not.
        kept.study.vocabulary = asked.study.vocabulary;
    }
    let changed = [
        ("--rows", arguments.rows.is_some_and(|rows| rows != kept.study.rows())),
        ("--blocks", arguments.conduct.blocks.is_some_and(|blocks| usize::from(blocks) != kept.study.blocks)),
        ("--seed", arguments.conduct.seed.is_some_and(|seed| seed != kept.schedule.seed)),
        (
            "--until",
            arguments
                .until
                .is_some_and(|until| (until == arguments::Until::Decided) != (kept.until == Until::Decided)),
        ),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        Some((argument, _)) => Err(refuse(format!("{argument} was another when it began"))),
        None => Ok(kept),
    }
}

/// Returns the directory of the databases; a resumed study has one.
fn path(arguments: &Study, resumed: Option<&Bundle>) -> PathBuf {
    if let Some(path) = arguments.conduct.path.first() {
        return path.clone();
    }
    let device = resumed.and_then(|bundle| bundle.contents().environment.devices.first());
    device.map_or_else(|| PathBuf::from("."), |device| path_of_text(&device.path))
}

/// Place of a study's records.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Place {
    /// A directory reserved for a new bundle.
    Reserved(Reservation),
    /// A bundle to continue, unchanged so far.
    Held(Bundle),
}

impl Place {
    fn reserve(named: Option<&Path>, plan: &Plan, interrupt: &Interrupt) -> Result<Place, Failure> {
        let name = format!("study-{}", plan.study.name);
        let reserved = bundle::reserve(named, Some(&name), interrupt)?;
        reserved.map(Place::Reserved).ok_or_else(|| Failure::run("no directory for the bundle"))
    }

    /// Creates the new bundle, or continues the old one if nothing relevant has changed.
    fn begin(self, plan: &Plan, environment: Environment) -> Result<Bundle, Failure> {
        match self {
            Place::Reserved(reserved) => Ok(Bundle::create(reserved, plan, environment)?),
            Place::Held(bundle) => go_on(bundle, &environment),
        }
    }
}

/// Continues a bundle, unless something relevant has changed: then nothing in it is touched.
fn go_on(mut bundle: Bundle, environment: &Environment) -> Result<Bundle, Failure> {
    let path = bundle.directory().to_path_buf();
    if let Some(why) = bundle.contents().environment.differences(environment).first() {
        return Err(StudyError::Resume { path, why: why.clone() }.into());
    }
    execution::ended(&bundle)?;
    let cleared = bundle.clear()?;
    let shown = path.display();
    if !cleared.removed.is_empty() {
        let removed = cleared.removed.join(", ");
        output::remark(&format!("{shown}: removed {removed}, left unfinished when the study was killed\n"));
    }
    if !cleared.left.is_empty() {
        let left = cleared.left.join(", ");
        output::remark(&format!(
            "{shown}: {left}: no file of a study; it stays, and `plumb verify` refuses it\n"
        ));
    }
    Ok(bundle)
}

/// Returns the environment of the study, with the settings of its plan.
fn environment(target: &mut dyn Target, plan: &Plan) -> Result<Environment, StudyError> {
    Ok(Environment { settings: plan.setting_facts(), ..target.environment()? })
}

pub(super) fn show(arguments: &Study, directory: &Path, context: &Analysis) -> Result<(), Failure> {
    let document = plumb_pages::study::document(context);
    if let Some(text) = in_form(arguments.conduct.shown(), context, &document)? {
        return output::print(&text);
    }
    output::print(&(output::report(&document) + "\n" + &output::summary(&document) + &paths(directory)))
}

/// Returns the result in a form for other programs; `None` if people read it.
fn in_form(shown: PrintForm, context: &Analysis, document: &Document) -> Result<Option<String>, Failure> {
    Ok(match shown {
        PrintForm::Text => None,
        PrintForm::Json => Some(document.answered(&plumb_study::bundle::json(context)?)),
        PrintForm::Of(StudyFormat::Markdown, _) => Some(markdown::render(document)),
        PrintForm::Of(StudyFormat::Junit, open) => Some(plumb_pages::study::junit(context, open)),
    })
}

/// Returns the paths of the reports, a line each.
fn paths(directory: &Path) -> String {
    bundle::listed(&REPORTS.map(|name| directory.join(name)))
}

/// Writes the effects as a picture.
fn draw(document: &Document, file: &Path) -> Result<(), Failure> {
    let none =
        || Failure::run("--picture: the study has no effects to draw: none of its claims was measured");
    let svg = picture(document, "effects").ok_or_else(none)?;
    Ok(write_new(file, &svg)?)
}

/// Treatment of a study that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It may continue, so its figures stay hidden.
    Kept,
    /// It ends where it is.
    Here,
}

/// Rebuilds the reports of a bundle. Fails if a raw record was changed.
pub fn rebuild(
    directory: &Path,
    end: End,
    drawn: Option<&Path>,
    shown: PrintForm,
) -> Result<Outcome, Failure> {
    let mut bundle = Bundle::open(directory, KINDS)?;
    if end == End::Here {
        bundle.end_here()?;
    }
    let context = report::publish(&mut bundle, plumb_pages::study::rendered)?;
    drop(bundle);
    let document = plumb_pages::study::document(&context);
    if let Some(file) = drawn {
        draw(&document, file)?;
    }
    match in_form(shown, &context, &document)? {
        Some(text) => output::print(&text)?,
        None => output::print(&(output::summary(&document) + &paths(directory)))?,
    }
    // The standing is printed; the outcome only says that the reports were written.
    Ok(Outcome::Fine)
}
