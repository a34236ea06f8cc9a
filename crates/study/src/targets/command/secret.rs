//! Variables whose values are in no file of a bundle (`secrets`).
//!
//! ```text
//! study file   environment = { TOKEN = "abc" }     the value goes to the command, and nowhere else
//! bundle       environment = { TOKEN = "***" }     the value is that of the caller's environment
//! ```
//!
//! The study of a bundle has `***` in place of each value. So it is the same study, with the same
//! hash, whoever runs it; and where the caller's environment lacks the variable, it is refused
//! before anything runs. `plumb study FILE --resume BUNDLE` takes the value from the file again.
//!
//! Limits: a secret is text alone, because the values of words are in the bundle. A value that is
//! also in another part of the study is refused, as a changed study would be another; what the
//! command prints is changed instead ([`job`](super::job)).

use super::template::{Template, Values};
use super::{RawCommand, Sections};
use toml::Spanned;

/// In the place of a value.
pub(super) const HIDDEN: &str = "***";
/// Bytes of the shortest value that is looked for in a study: shorter ones are in any text by
/// chance.
const FOUND_MIN: usize = 4;

/// Refuses words in the text of a secret.
pub(super) fn require_text(command: &RawCommand) -> Result<(), String> {
    for name in &command.secrets {
        let text = command.environment.get(name).map_or("", String::as_str);
        if let Some(word) = Template::new(text).words().next() {
            return Err(format!(
                "secrets: {name} has the word {{{word}}} in [command.environment], and the values of words are kept in \
                 the bundle; give {name} by the environment of plumb, or as text alone"
            ));
        }
    }
    Ok(())
}

/// Refuses a secret whose value is nowhere, or also in another part of the study. `kept` is the
/// study as its bundle has it.
pub(super) fn require(command: &RawCommand, kept: &str) -> Result<(), String> {
    for name in &command.secrets {
        let value = value_of(command, name);
        if value.is_none() && is_hidden(command, name) {
            return Err(format!(
                "the value of {name} was in its study file, and no bundle keeps it (secrets): set {name} in the \
                 environment, or name the file too, as in `plumb study FILE.toml --resume BUNDLE`"
            ));
        }
        // As it stands in a text, and as TOML quotes it.
        let quoted = |value: &str| format!("{value:?}").trim_matches('"').to_string();
        let found = |value: &String| kept.contains(value) || kept.contains(&quoted(value));
        if value.is_some_and(|value| value.len() >= FOUND_MIN && found(&value)) {
            return Err(format!(
                "the value of {name} (secrets) is also in another part of the study, which its bundle keeps; \
                 use ${name} there, by a shell"
            ));
        }
    }
    Ok(())
}

/// The sections as a bundle has them.
pub(super) fn left_out(sections: &Sections) -> Sections {
    let mut kept = sections.clone();
    let mut command = kept.command.get_ref().clone();
    for (_, value) in command.environment.iter_mut().filter(|(name, _)| command.secrets.contains(name)) {
        *value = HIDDEN.to_string();
    }
    kept.command = Spanned::new(kept.command.span(), command);
    kept
}

/// The value of a variable of `[command.environment]` for a run.
pub(super) fn value(
    command: &RawCommand,
    name: &str,
    text: &str,
    values: &Values<'_>,
) -> Result<String, String> {
    let caller = || value_of(command, name);
    let hidden = is_hidden(command, name).then(caller).flatten();
    hidden.map_or_else(|| Template::new(text).fill(values), Ok)
}

/// A text in which no value of a secret is.
pub(super) fn without(command: &RawCommand, text: &str) -> String {
    let values = command.secrets.iter().filter_map(|name| value_of(command, name));
    values.fold(text.to_string(), |text, value| text.replace(&value, HIDDEN))
}

/// The value of a secret, by the study or by the caller's environment; none where neither has one.
fn value_of(command: &RawCommand, name: &str) -> Option<String> {
    let given = command.environment.get(name).filter(|_| !is_hidden(command, name)).cloned();
    given.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

/// True if the study is that of a bundle, from which the value was left out.
fn is_hidden(command: &RawCommand, name: &str) -> bool {
    let secret = command.secrets.iter().any(|secret| secret == name);
    secret && command.environment.get(name).is_some_and(|text| text == HIDDEN)
}
