//! The command line: parse, call, print. The only crate that prints and exits.
//!
//! Every command ends in an [`Outcome`] or a [`Failure`]; a failure is one
//! line on stderr. Exit codes are in one table (`outcome`).

mod arguments;
mod baseline;
mod bundle;
mod calibrate;
mod command;
mod command_line;
mod completion;
mod cure;
mod database;
mod document;
mod failure;
mod history;
mod interrupt;
mod outcome;
mod output;
mod progress;
mod run;
mod settings;
mod targets;
mod traced;
mod types;
mod welcome;

use arguments::{Arguments, Command};
use failure::Failure;
use outcome::Outcome;
use plumb_record::Build;
use std::path::Path;
use std::process::ExitCode;

const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    revision: option_env!("PLUMB_REVISION"),
    profile: env!("PLUMB_PROFILE"),
    engine_level: plumb_engine::OPT_LEVEL,
};

fn main() -> ExitCode {
    BUILD.declare();
    report_bugs();
    interrupt::survive_large_files();
    let ended = parse().and_then(|arguments| {
        let Some(arguments) = arguments else { return Ok(Outcome::Fine) };
        let path = arguments.command.as_ref().and_then(Command::path).map(Path::to_path_buf);
        dispatch(arguments).map_err(|failure| match path {
            Some(path) => Failure { message: command_line::with_path(&failure.message, &path), ..failure },
            None => failure,
        })
    });
    while !interrupt::claim_end() {
        // The watchdog removes what is temporary and ends the program.
        std::thread::park();
    }
    plumb_run::left().iter().for_each(|why| output::remark(&format!("{why}\n")));
    match ended {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(failure) => {
            // An address that was typed where a file belongs is repeated in the message.
            let message = command_line::without_secret(&failure.message);
            let failure = Failure { message, ..failure };
            output::complain(&failure.message);
            history::note(&failure);
            let code = failure.outcome.code();
            // A failure after a signal was caused by it, if only because the signal ended a child
            // command. Damaged data is damaged all the same.
            let by_signal = interrupt::exit_code().filter(|_| failure.outcome != Outcome::INVALID);
            ExitCode::from(by_signal.unwrap_or(code))
        }
    }
}

/// A panic is a bug of the program: one line that says where, unless
/// RUST_BACKTRACE asks for the backtrace. What was temporary is removed on the way up.
fn report_bugs() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    std::panic::set_hook(Box::new(|bug| {
        output::complain(&format!("this is a bug: {bug}; RUST_BACKTRACE=1 shows how it came about"));
    }));
}

/// Parses the arguments; none if help or the version was printed.
fn parse() -> Result<Option<Arguments>, Failure> {
    match arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments.map(Some),
        Err(error) if error.use_stderr() => Err(Failure::of_usage(&error)),
        Err(error) => output::print(&output::wrapped_help(&error.to_string())).map(|()| None),
    }
}

fn dispatch(arguments: Arguments) -> Result<Outcome, Failure> {
    if let Some(path) = arguments.command.as_ref().and_then(Command::path) {
        command::clean::remark(path);
    }
    arguments.command.iter().filter_map(Command::kept_as).for_each(history::begin);
    match arguments.command {
        None => output::print(welcome::TEXT).map(|()| Outcome::Fine),
        Some(Command::Run(run)) => run::run(&run),
        Some(Command::Study(study)) if study.check => command::study_check::run(&study),
        Some(Command::Study(study)) => command::study::run(&study),
        Some(Command::CompareCommands(compare)) => command::study::run(&compare.into_study()),
        Some(Command::StudyRun) => command::study_run::run(),
        Some(Command::ScanInstance) => command::scan_instance::run(),
        Some(Command::Verify(verify)) => command::verify::run(&verify),
        Some(Command::Audit(audit)) => command::audit::run(&audit),
        Some(Command::Share(share)) => command::share::run(&share),
        Some(Command::Calibrate(calibrate)) => calibrate::run(&calibrate),
        Some(Command::Load(load)) => command::load::run(&load),
        Some(Command::Index(index)) => command::index::run(&index),
        Some(Command::PlanSort(plan)) => command::plan_sort::run(&plan),
        Some(Command::Copy(copy)) => command::copy::run(&copy),
        Some(Command::Check(check)) => command::check::run(&check),
        Some(Command::Export(export)) => command::export::export(&export),
        Some(Command::Head(head)) => command::export::head(&head),
        Some(Command::Count(count)) => command::count::run(&count),
        Some(Command::Drop(drop)) => command::drop::run(&drop),
        Some(Command::Backup(backup)) => command::backup::run(&backup),
        Some(Command::Restore(restore)) => command::backup::restore(&restore),
        Some(Command::Clean(clean)) => command::clean::run(&clean),
        Some(Command::Undo(undo)) => command::undo::run(&undo),
        Some(Command::List(list)) => command::list::run(&list),
        Some(Command::Trace(trace)) => command::trace::run(&trace),
        Some(Command::Snoop(snoop)) => command::snoop::run(&snoop),
        Some(Command::Serve(serve)) => command::serve::run(&serve),
        Some(Command::Report(report)) => command::report::run(&report),
        Some(Command::Import(import)) => command::import::run(&import),
        Some(Command::Diagnose(diagnose)) => command::diagnose::run(&diagnose),
        Some(Command::Plans(plans)) => command::plans::run(&plans),
        Some(Command::Prune(prune)) => command::prune::run(&prune),
        Some(Command::Info(info)) => command::info::run(&info),
        Some(Command::Sort(sort)) => command::sort::run(&sort),
        Some(Command::Compare(compare)) => command::compare::run(&compare),
        Some(Command::Completions(of)) => output::print(completion::script(of.shell)).map(|()| Outcome::Fine),
        Some(Command::Man) => output::print(&document::manual()).map(|()| Outcome::Fine),
        Some(Command::Complete(asked)) => {
            output::print(&completion::candidates(asked.shell, &asked.words)).map(|()| Outcome::Fine)
        }
    }
}
