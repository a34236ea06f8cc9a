//! Studies of commands given on the command line: the equivalent study file.
//!
//! Each line of it remembers the option that it comes from, so that a refusal names what was typed.

use crate::arguments::AroundCommand;
use crate::failure::Failure;
use plumb_units::cut;

/// Every arm once a block, unless `--blocks` says otherwise.
const BLOCKS: u16 = 10;
/// Most bytes of a command in its level's label.
const LABEL_BYTES: usize = 60;
/// The measure of a figure that has no name of its own.
const FIGURE: &str = "figure";

/// The text of a study file, with the option behind each of its lines.
#[derive(Debug, Default)]
pub struct Draft {
    pub text: String,
    origins: Vec<String>,
}

impl Draft {
    /// Returns the option behind a line, counted from 1.
    #[must_use]
    pub fn origin(&self, line: usize) -> String {
        self.origins.get(line.saturating_sub(1)).cloned().unwrap_or_default()
    }

    /// Appends lines to the file that stand for this option.
    fn say(&mut self, origin: &str, lines: &str) {
        for line in lines.lines() {
            self.text.push_str(line);
            self.text.push('\n');
            self.origins.push(origin.to_string());
        }
    }
}

/// Returns the study file. Without a command of its own each factor is a whole command.
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
    for text in &around.receipt {
        draft.say(&format!("--receipt {text}"), &receipt(text)?);
    }
    factors.iter().for_each(|factor| factor.say(&mut draft, around.same));
    Ok(draft)
}

/// The table of a receipt: `WORD=VALUE:KIND:WHAT`.
fn receipt(text: &str) -> Result<String, Failure> {
    let refused = |what: &str| {
        Failure::usage(format!(
            "--receipt {text}: expected {what}, as in sync=off:output:^off$, io=uring:ring-requests:1 or \
             direct=1:open-flag:*/x.dat O_DIRECT"
        ))
    };
    let form = || refused("WORD=VALUE:KIND:WHAT");
    let (when, rest) = text.split_once(':').ok_or_else(form)?;
    let (word, value) = when.split_once('=').ok_or_else(form)?;
    let (kind, what) = rest.split_once(':').ok_or_else(form)?;
    let sought = match kind {
        "output" => format!("regex = {}", quoted(&format!("(?m){what}"))),
        "opened" | "library" | "executable" => format!("path = {}", quoted(what)),
        "open-flag" => {
            let (path, flag) = what.rsplit_once(' ').ok_or_else(|| refused("a path and a flag"))?;
            format!("path = {}\nflag = {}", quoted(path), quoted(flag))
        }
        // The reader of the study lists the other kinds.
        _ => {
            let least: f64 = what.parse().map_err(|_| refused("the least number that must be seen"))?;
            format!("at_least = {least:?}")
        }
    };
    let when = format!("when = {{ {} = {} }}", quoted(word), quoted(value));
    Ok(format!("[[receipt]]\nkind = {}\n{sought}\n{when}", quoted(kind)))
}

/// The measure to compare: its name, and its table unless every command has it.
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

/// Returns the last name of a JSON pointer, unless it is an index of a list or a
/// measure that every command has.
fn named_by(pointer: &str) -> &str {
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let own = ["elapsed", "cpu"].contains(&last);
    let named =
        last.starts_with(|first: char| first.is_ascii_alphabetic()) && last.chars().all(plain) && !own;
    if named { last } else { FIGURE }
}

/// The name of a factor, and two values or more.
///
/// # Errors
/// When it has another form; `example` is one that has this.
pub fn named_values(text: &str, example: &str) -> Result<(String, Vec<String>), Failure> {
    let refused = |why: &str| Failure::usage(format!("--factor {text}: {why}, as in {example}"));
    let (name, values) = text.split_once('=').ok_or_else(|| refused("expected a name with its values"))?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_string()).collect();
    match values.len() {
        1 => Err(refused("one value is not varied; give it two")),
        _ => Ok((name.trim().to_string(), values)),
    }
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
        let (name, values) = named_values(text, "bs=4k,8k")?;
        let levels = values.into_iter().map(|value| (value.clone(), value)).collect();
        Ok(Factor { name, origin: format!("--factor {text}"), levels })
    }

    /// Each level is called as its command, which is cut where it is long; of several that are then
    /// alike the later ones have their number.
    fn of_commands(commands: &[String]) -> Factor {
        let mut levels: Vec<(String, String)> = Vec::new();
        for (number, command) in (1..).zip(commands) {
            let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
            let mut label = cut(&line, LABEL_BYTES).to_string();
            if levels.iter().any(|(known, _)| *known == label) {
                label.push_str(&format!(" ({number})"));
            }
            levels.push((label, command.clone()));
        }
        Factor { name: "command".to_string(), origin: "COMMAND".to_string(), levels }
    }

    /// Returns the name of the claim about a level, which has the level's number, or the command's
    /// text as far as a name allows.
    fn claim(&self, number: usize, label: &str) -> String {
        let name = plain(label);
        let fits = name.len() <= LABEL_BYTES && name.starts_with(|first: char| first.is_ascii_alphanumeric());
        match (self.origin.as_str(), fits) {
            ("COMMAND", true) => name,
            (_, true) if name == label => format!("{}-{label}", self.name),
            _ => format!("{}-{number}", self.name),
        }
    }

    /// Appends the factor, and a claim for each level except the first.
    fn say(&self, draft: &mut Draft, same: bool) {
        draft.say(&self.origin, &format!("[[factor]]\nname = {}\nlevels = [", quoted(&self.name)));
        for (label, value) in &self.levels {
            let set = format!("{} = {}", quoted(&self.name), quoted(value));
            draft.say(&self.origin, &format!("    {{ label = {}, set = {{ {set} }} }},", quoted(label)));
        }
        draft.say(&self.origin, "]");
        let Some(((reference, _), others)) = self.levels.split_first() else { return };
        for (number, (label, _)) in (2..).zip(others) {
            let expect = if same { "equal within 5%" } else { "differs" };
            let (name, text) =
                (self.claim(number, label), format!("{} {label} against {reference}.", self.name));
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

/// A value as a part of a name.
fn plain(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    value.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    // Every basic string of JSON is one of TOML.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_commands_is_called_as_its_command() {
        let commands = ["grep -c foo big.txt", "true", "true"].map(String::from);
        let labels: Vec<String> =
            Factor::of_commands(&commands).levels.into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, ["grep -c foo big.txt", "true", "true (3)"]);
        let factor = Factor::of_commands(&commands);
        let names: Vec<String> =
            (1..).zip(&labels).map(|(number, label)| factor.claim(number, label)).collect();
        assert_eq!(names, ["grep__c_foo_big.txt", "true", "true__3_"]);
        let word = Factor::of_values("bs=4k,8k -q").unwrap_or_else(|refused| panic!("{}", refused.message));
        assert_eq!([word.claim(1, "4k"), word.claim(2, "8k -q")], ["bs-4k", "bs-2"]);
    }

    #[test]
    fn receipts_become_tables() {
        for (text, table) in [
            (
                "sync=off:output:^off$",
                "kind = \"output\"\nregex = \"(?m)^off$\"\nwhen = { \"sync\" = \"off\" }",
            ),
            (
                "io=uring:ring-requests:1",
                "kind = \"ring-requests\"\nat_least = 1.0\nwhen = { \"io\" = \"uring\" }",
            ),
            (
                "d=1:open-flag:*/x.dat O_DIRECT",
                "kind = \"open-flag\"\npath = \"*/x.dat\"\nflag = \"O_DIRECT\"\nwhen = { \"d\" = \"1\" }",
            ),
        ] {
            assert_eq!(receipt(text).ok(), Some(format!("[[receipt]]\n{table}")), "{text}");
        }
        for wrong in ["sync", "sync=off:output", "sync:output:x", "io=uring:ring-requests:many"] {
            let why = receipt(wrong).expect_err("refused").message;
            assert!(why.starts_with(&format!("--receipt {wrong}: expected ")), "{why}");
        }
    }
}
