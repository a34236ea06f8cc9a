//! Makes one run of a study in a process of its own, as the hidden command of the program does.
//! Tests of the target start it.

use plumb_postgres::Postgres;
use plumb_study::targets::child;
use std::process::ExitCode;

fn main() -> ExitCode {
    match child::serve(std::io::stdin(), &[&Postgres], |line| eprintln!("{line}")) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
