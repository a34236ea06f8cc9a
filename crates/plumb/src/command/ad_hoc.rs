//! Studies of commands given on the command line: the equivalent study file.
//!
//! Each value keeps its option, so that an error names the option.

use crate::arguments::AroundCommand;
use crate::failure::Failure;
use crate::targets::KINDS;
use plumb_study::StudyError;
use plumb_study::definition::{Draft, DraftClaim, DraftValue, Study};
use plumb_units::cut;

/// Every arm once a block, unless `--blocks` says otherwise.
const BLOCKS: &str = "10";
/// Longest part of a command, in bytes, that names its level in reports.
const LABEL_BYTES: usize = 60;
/// The section of a study file that states the command.
const SECTION: &str = "command";
/// Measure of a figure without a name.
const FIGURE: &str = "figure";

/// Returns the study, with the option of each of its values.
pub fn study(command: &str, factors: &[String], around: &AroundCommand) -> Result<Study, Failure> {
    let whole = command.is_empty();
    let factors = match whole {
        true => vec![Factor::of_commands(factors)],
        false => factors.iter().map(|text| Factor::of_values(text)).collect::<Result<_, _>>()?,
    };
    let (name, run, origin) =
        if whole { ("compare-commands", "{command}", "COMMAND") } else { ("command", command, "--command") };
    let exit_codes: Vec<String> = around.exit_codes.iter().map(ToString::to_string).collect();
    let mut draft = Draft::stated(origin);
    let measured = measured(&mut draft, around)?;
    let question = format!("Does it matter for {measured}?");
    for (key, value) in [
        ("name", name),
        ("title", "A comparison of commands"),
        ("question", &question),
        ("target", "command"),
    ] {
        draft.set(origin, key, value);
    }
    draft.set("--blocks", "blocks", DraftValue::Number(BLOCKS));
    draft.set("--measure", "statistic", measured);
    if around.same {
        draft.set("--same", "expects", "same");
    }
    draft.set_in(origin, SECTION, "run", run);
    draft.set_in(origin, SECTION, "shell", DraftValue::Flag(around.shell));
    if !exit_codes.is_empty() {
        let codes = exit_codes.iter().map(|code| DraftValue::Number(code)).collect();
        draft.set_in("--exit-codes", SECTION, "exit_codes", DraftValue::List(codes));
    }
    let others = [
        ("setup", &around.setup),
        ("cleanup", &around.cleanup),
        ("prepare", &around.prepare),
        ("conclude", &around.conclude),
        ("verify", &around.verify),
    ];
    for (name, command) in others.into_iter().filter_map(|(name, command)| Some((name, command.as_ref()?))) {
        draft.set_in(&format!("--{name}"), SECTION, name, command.as_str());
    }
    for text in &around.receipt {
        draft.push(&format!("--receipt {text}"), "receipt", receipt(text)?);
    }
    factors.iter().for_each(|factor| factor.state(&mut draft, around.same));
    draft.check(KINDS).map_err(|error| with_options(Failure::from(StudyError::from(error))))
}

/// Returns an error whose cure names the option instead of a line of a file.
pub(super) fn with_options(refusal: Failure) -> Failure {
    let cures =
        [("say expects = \"same\" at the top", "give --same"), ("say expects = \"same\"", "give --same")];
    let message =
        cures.into_iter().fold(refusal.message, |text, (of_file, option)| text.replace(of_file, option));
    Failure { message, ..refusal }
}

/// Parses a receipt of the form `WORD=VALUE:KIND:WHAT`.
fn receipt(text: &str) -> Result<Vec<(&'static str, DraftValue<'_>)>, Failure> {
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
    let mut row = vec![("kind", DraftValue::from(kind))];
    match kind {
        "output" => row.push(("regex", format!("(?m){what}").as_str().into())),
        "opened" | "library" | "executable" => row.push(("path", what.into())),
        "open-flag" => {
            let (path, flag) = what.rsplit_once(' ').ok_or_else(|| refused("a path and a flag"))?;
            row.extend([("path", path.into()), ("flag", flag.into())]);
        }
        // The parser of the study rejects unknown kinds and lists the known ones.
        _ => {
            let number = what.parse::<f64>().ok().map(|_| DraftValue::Number(what));
            row.push(("at_least", number.ok_or_else(|| refused("the least number that must be seen"))?));
        }
    }
    row.push(("when", DraftValue::Table(vec![(word.to_string(), value.into())])));
    Ok(row)
}

/// Returns the name of the measure, and declares a figure that not every command has.
fn measured<'a>(draft: &mut Draft<'_>, around: &'a AroundCommand) -> Result<&'a str, Failure> {
    let asked = around.measure.as_deref().unwrap_or("elapsed");
    let Some((kind @ ("regex" | "json" | "size"), what)) = asked.split_once(':') else {
        return require_unadorned(asked, around).map(|()| asked);
    };
    let Some(better) = &around.better else {
        let why = format!("--measure {asked}: --better lower or --better higher says which way it is to go");
        return Err(Failure::usage(why));
    };
    let name = if kind == "json" { named_by(what) } else { FIGURE };
    let unit = around.unit.as_deref().or((kind == "size").then_some("B")).unwrap_or_default();
    let stated = [
        (kind, Some(what)),
        ("better", Some(better)),
        ("unit", Some(unit)),
        ("take", around.take.as_deref()),
    ];
    let row = stated.into_iter().filter_map(|(key, value)| Some((key.to_string(), DraftValue::from(value?))));
    draft.set_in("--measure", "measure", name, DraftValue::Table(row.collect()));
    Ok(name)
}

/// Rejects `--take`, `--unit` and `--better` for measures that need no pattern, such as elapsed.
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

/// Parses the name of a factor and two or more values. `example` shows the form in the error.
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
    /// The option with the word.
    origin: String,
    levels: Vec<(String, String)>,
}

impl Factor {
    fn of_values(text: &str) -> Result<Factor, Failure> {
        let (name, values) = named_values(text, "bs=4k,8k")?;
        let levels = values.into_iter().map(|value| (value.clone(), value)).collect();
        Ok(Factor { name, origin: format!("--factor {text}"), levels })
    }

    /// Returns the factor of these commands. A level's label is its command, cut if it is long;
    /// equal labels get a number.
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

    /// Returns the name of the claim about a level: the level's number, or the command's text as
    /// far as a name allows.
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
    fn state(&self, draft: &mut Draft<'_>, same: bool) {
        let level = |(label, value): &(String, String)| {
            let set = DraftValue::Table(vec![(self.name.clone(), value.as_str().into())]);
            DraftValue::Table(vec![("label".to_string(), label.as_str().into()), ("set".to_string(), set)])
        };
        let levels = DraftValue::List(self.levels.iter().map(level).collect());
        draft.push(&self.origin, "factor", [("name", self.name.as_str().into()), ("levels", levels)]);
        let Some(((reference, _), others)) = self.levels.split_first() else { return };
        for (number, (label, _)) in (2..).zip(others) {
            let expect = if same { "equal within 5%" } else { "differs" };
            let (name, text) =
                (self.claim(number, label), format!("{} {label} against {reference}.", self.name));
            let claim = DraftClaim {
                name: &name,
                text: &text,
                factor: &self.name,
                from: reference,
                to: label,
                expect,
            };
            draft.push_claim(&self.origin, &claim);
        }
    }
}

/// Returns a value in the form of a name.
fn plain(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    value.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
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
        for (text, row) in [
            (
                "sync=off:output:^off$",
                r#"kind=Text("output") regex=Text("(?m)^off$") when=Table([("sync", Text("off"))])"#,
            ),
            (
                "io=uring:ring-requests:1",
                r#"kind=Text("ring-requests") at_least=Number("1") when=Table([("io", Text("uring"))])"#,
            ),
            (
                "d=1:open-flag:*/x.dat O_DIRECT",
                r#"kind=Text("open-flag") path=Text("*/x.dat") flag=Text("O_DIRECT") when=Table([("d", Text("1"))])"#,
            ),
        ] {
            let found = receipt(text).unwrap_or_else(|refused| panic!("{}", refused.message));
            let found: Vec<String> = found.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
            assert_eq!(found.join(" "), row, "{text}");
        }
        for wrong in ["sync", "sync=off:output", "sync:output:x", "io=uring:ring-requests:many"] {
            let why = receipt(wrong).expect_err("refused").message;
            assert!(why.starts_with(&format!("--receipt {wrong}: expected ")), "{why}");
        }
    }
}
