//! Studies of commands that are asked for on the command line: the study file that says the same.
//!
//! Each line of it remembers the option that it comes from, so that a refusal names what was typed.

use crate::arguments::AroundCommand;
use crate::failure::Failure;

/// Every arm once a block, unless `--blocks` says otherwise.
const BLOCKS: u16 = 10;
/// The measure of a figure that has no name of its own.
const FIGURE: &str = "figure";

/// The text of a study file, with the option behind each of its lines.
#[derive(Debug, Default)]
pub struct Draft {
    /// The text.
    pub text: String,
    origins: Vec<String>,
}

impl Draft {
    /// Where a line, from 1, comes from.
    #[must_use]
    pub fn origin(&self, line: usize) -> String {
        self.origins.get(line.saturating_sub(1)).cloned().unwrap_or_default()
    }

    /// Says something in lines of the file that stand for this option.
    fn say(&mut self, origin: &str, lines: &str) {
        for line in lines.lines() {
            self.text.push_str(line);
            self.text.push('\n');
            self.origins.push(origin.to_string());
        }
    }
}

/// The study file. Without a command of its own each factor is a whole command.
///
/// # Errors
/// When an argument is not of its form.
pub fn draft(command: &str, factors: &[String], around: &AroundCommand) -> Result<Draft, Failure> {
    let whole = command.is_empty();
    let factors = match whole {
        true => vec![Factor::of_commands(factors)],
        false => factors.iter().map(|text| Factor::of_values(text)).collect::<Result<_, _>>()?,
    };
    let (name, run, origin) =
        if whole { ("compare-commands", "{command}", "COMMAND") } else { ("command", command, "--command") };
    let measured = Measured::of(around)?;
    let question = format!("Does it matter for {}?", measured.name);
    let mut draft = Draft::default();
    for (key, value) in [
        ("name", name),
        ("title", "A comparison of commands"),
        ("question", &question),
        ("target", "command"),
    ] {
        draft.say(origin, &format!("{key} = {}", quoted(value)));
    }
    draft.say("--blocks", &format!("blocks = {BLOCKS}"));
    draft.say("--measure", &format!("statistic = {}", quoted(&measured.name)));
    if around.same {
        draft.say("--same", "expects = \"same\"");
    }
    draft.say(origin, &format!("[command]\nrun = {}\nshell = {}", quoted(run), around.shell));
    if !around.exit_codes.is_empty() {
        draft.say("--exit-codes", &format!("exit_codes = {:?}", around.exit_codes));
    }
    let beside = [
        ("setup", &around.setup),
        ("cleanup", &around.cleanup),
        ("prepare", &around.prepare),
        ("conclude", &around.conclude),
        ("verify", &around.verify),
    ];
    for (name, command) in beside.into_iter().filter_map(|(name, command)| Some((name, command.as_ref()?))) {
        draft.say(&format!("--{name}"), &format!("{name} = {}", quoted(command)));
    }
    draft.say("--measure", &measured.declaration);
    factors.iter().for_each(|factor| factor.say(&mut draft, around.same));
    Ok(draft)
}

/// What is compared: the name of a measure, and its table where it is none that every command has.
struct Measured {
    name: String,
    declaration: String,
}

impl Measured {
    fn of(around: &AroundCommand) -> Result<Measured, Failure> {
        let plain = |name: &str| Ok(Measured { name: name.to_string(), declaration: String::new() });
        let asked = around.measure.as_deref().unwrap_or("elapsed");
        let Some((kind @ ("regex" | "json" | "size"), what)) = asked.split_once(':') else {
            return require_unadorned(asked, around).and_then(|()| plain(asked));
        };
        let Some(better) = &around.better else {
            let why =
                format!("--measure {asked}: --better lower or --better higher says which way it is to go");
            return Err(Failure::usage(why));
        };
        let name = if kind == "json" { named_by(what) } else { FIGURE };
        let unit = around.unit.as_deref().or((kind == "size").then_some("B")).unwrap_or_default();
        let take = around.take.as_ref().map_or_else(String::new, |take| format!("\ntake = {}", quoted(take)));
        let declaration = format!(
            "[measure.{name}]\n{kind} = {}\nbetter = {}\nunit = {}{take}",
            quoted(what),
            quoted(better),
            quoted(unit)
        );
        Ok(Measured { name: name.to_string(), declaration })
    }
}

/// Refuses options of a declared figure for a measure that every command has.
fn require_unadorned(measure: &str, around: &AroundCommand) -> Result<(), Failure> {
    let given = [("--take", &around.take), ("--unit", &around.unit), ("--better", &around.better)];
    match given.into_iter().find_map(|(option, value)| Some((option, value.as_ref()?))) {
        None => Ok(()),
        Some((option, value)) => Err(Failure::usage(format!(
            "{option} {value}: it belongs to a figure of --measure regex:PATTERN, json:/POINTER or size:FILE, and {measure} \
             has its own; leave it out"
        ))),
    }
}

/// The last name of a JSON pointer, unless that is a place in a list or a measure that every command has.
fn named_by(pointer: &str) -> &str {
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let own = ["elapsed", "cpu"].contains(&last);
    let named =
        last.starts_with(|first: char| first.is_ascii_alphabetic()) && last.chars().all(plain) && !own;
    if named { last } else { FIGURE }
}

/// A word with its values, each with the label of its level.
struct Factor {
    name: String,
    /// The option that it comes from.
    origin: String,
    levels: Vec<(String, String)>,
}

impl Factor {
    fn of_values(text: &str) -> Result<Factor, Failure> {
        let Some((name, values)) = text.split_once('=') else {
            return Err(Failure::usage(format!(
                "--factor {text}: expected a word with its values, as in bs=4k,8k"
            )));
        };
        let levels: Vec<_> = values.split(',').map(|value| (plain(value), value.to_string())).collect();
        if levels.len() < 2 {
            return Err(Failure::usage(format!(
                "--factor {text}: one value is not varied; give it two, as in bs=4k,8k"
            )));
        }
        Ok(Factor { name: name.trim().to_string(), origin: format!("--factor {text}"), levels })
    }

    fn of_commands(commands: &[String]) -> Factor {
        let label = |number: usize| {
            char::from_u32('A' as u32 + number as u32).map_or_else(|| number.to_string(), String::from)
        };
        let levels = commands.iter().enumerate().map(|(number, command)| (label(number), command.clone()));
        Factor { name: "command".to_string(), origin: "COMMAND".to_string(), levels: levels.collect() }
    }

    /// The factor, and a claim for each level beside the first.
    fn say(&self, draft: &mut Draft, same: bool) {
        draft.say(&self.origin, &format!("[[factor]]\nname = {}\nlevels = [", quoted(&self.name)));
        for (label, value) in &self.levels {
            let set = format!("{} = {}", quoted(&self.name), quoted(value));
            draft.say(&self.origin, &format!("    {{ label = {}, set = {{ {set} }} }},", quoted(label)));
        }
        draft.say(&self.origin, "]");
        let Some(((reference, _), others)) = self.levels.split_first() else { return };
        for (label, _) in others {
            let expect = if same { "equal within 5%" } else { "differs" };
            let (name, text) =
                (format!("{}-{label}", self.name), format!("{} {label} against {reference}.", self.name));
            for (key, value) in [
                ("[[claim]]\nname", name.as_str()),
                ("text", &text),
                ("factor", &self.name),
                ("from", reference),
                ("to", label),
                ("expect", expect),
            ] {
                draft.say(&self.origin, &format!("{key} = {}", quoted(value)));
            }
        }
    }
}

/// A value as the label of its level.
fn plain(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    value.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    // Every basic string of JSON is one of TOML.
    serde_json::Value::from(text).to_string()
}
