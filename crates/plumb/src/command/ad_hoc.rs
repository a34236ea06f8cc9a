//! Studies of commands that are asked for on the command line: the study file that says the same.

use crate::arguments::AroundCommand;
use crate::failure::Failure;
use std::fmt::Write as _;

/// Every arm once a block, unless `--blocks` says otherwise.
const BLOCKS: u16 = 10;

/// The text of the study file. Without a command of its own each factor is a whole command.
///
/// # Errors
/// When an argument is not of its form.
pub fn text(command: &str, factors: &[String], around: &AroundCommand) -> Result<String, Failure> {
    let whole = command.is_empty();
    let factors = match whole {
        true => vec![Factor::of_commands(factors)],
        false => factors.iter().map(|text| Factor::of_values(text)).collect::<Result<_, _>>()?,
    };
    let run = if whole { "{command}" } else { command };
    let (statistic, measure) = measure(around)?;
    let mut out = String::new();
    let name = if whole { "compare-commands" } else { "command" };
    let _ = write!(
        out,
        "name = {}\ntitle = {}\nquestion = {}\ntarget = \"command\"\nblocks = {BLOCKS}\nstatistic = {}\n{}\n[command]\nrun = {}\nshell = {}\n",
        quoted(name),
        quoted("A comparison of commands"),
        quoted(&format!("Does it matter for {statistic}?")),
        quoted(&statistic),
        if around.same { "expects = \"same\"\n" } else { "" },
        quoted(run),
        around.shell,
    );
    let beside = [("prepare", &around.prepare), ("conclude", &around.conclude), ("verify", &around.verify)];
    for (name, command) in beside.into_iter().filter_map(|(name, command)| Some((name, command.as_ref()?))) {
        let _ = writeln!(out, "{name} = {}", quoted(command));
    }
    out.push_str(&measure);
    factors.iter().for_each(|factor| factor.write(&mut out, around.same));
    Ok(out)
}

/// The measure's name, and its table where it is none that every command has.
fn measure(around: &AroundCommand) -> Result<(String, String), Failure> {
    let Some(asked) = &around.measure else { return Ok(("elapsed".to_string(), String::new())) };
    let Some((kind @ ("regex" | "json" | "size"), what)) = asked.split_once(':') else {
        return Ok((asked.clone(), String::new()));
    };
    let Some(better) = &around.better else {
        let why = format!("--measure {asked}: --better lower or --better higher says which way it is to go");
        return Err(Failure::usage(why));
    };
    Ok((
        "figure".to_string(),
        format!("\n[measure.figure]\n{kind} = {}\nbetter = {}\n", quoted(what), quoted(better)),
    ))
}

/// A word with its values, each with the label of its level.
struct Factor {
    name: String,
    levels: Vec<(String, String)>,
}

impl Factor {
    fn of_values(text: &str) -> Result<Factor, Failure> {
        let Some((name, values)) = text.split_once('=') else {
            return Err(Failure::usage(format!(
                "--factor {text}: expected a word with its values, as in bs=4k,8k"
            )));
        };
        let levels = values.split(',').map(|value| (value.to_string(), value.to_string()));
        Ok(Factor { name: name.trim().to_string(), levels: levels.collect() })
    }

    fn of_commands(commands: &[String]) -> Factor {
        let label = |number: usize| {
            char::from_u32('A' as u32 + number as u32).map_or_else(|| number.to_string(), String::from)
        };
        let levels = commands.iter().enumerate().map(|(number, command)| (label(number), command.clone()));
        Factor { name: "command".to_string(), levels: levels.collect() }
    }

    /// The factor, and a claim for each level beside the first.
    fn write(&self, out: &mut String, same: bool) {
        let _ = write!(out, "\n[[factor]]\nname = {}\nlevels = [\n", quoted(&self.name));
        let plain =
            |label: &str| {
                label
                    .chars()
                    .map(|letter| {
                        if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_') {
                            letter
                        } else {
                            '_'
                        }
                    })
                    .collect::<String>()
            };
        for (label, value) in &self.levels {
            let set = format!("{} = {}", quoted(&self.name), quoted(value));
            let _ = writeln!(out, "    {{ label = {}, set = {{ {set} }} }},", quoted(&plain(label)));
        }
        out.push_str("]\n");
        let Some(((reference, _), others)) = self.levels.split_first() else { return };
        for (label, _) in others {
            let expect = if same { "equal within 5%" } else { "differs" };
            let _ = write!(
                out,
                "\n[[claim]]\nname = {}\ntext = {}\nfactor = {}\nfrom = {}\nto = {}\nexpect = {}\n",
                quoted(&format!("{}-{}", self.name, plain(label))),
                quoted(&format!("{} {label} against {reference}.", self.name)),
                quoted(&self.name),
                quoted(&plain(reference)),
                quoted(&plain(label)),
                quoted(expect),
            );
        }
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    // Every basic string of JSON is one of TOML.
    serde_json::Value::from(text).to_string()
}
