//! The answer of a report: one sentence, first in a terminal, on a page and in JSON.
//!
//! ```text
//! what was asked: result with its size (how sure); next step
//!   name   value                      LINES_MAX lines at most, in a terminal and in JSON
//! ```
//!
//! Owners of data fill the parts from their verdicts and findings. Rejected: a free sentence of
//! each kind, because JSON then lacks its parts, and one kind forgets the doubt.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Most lines below the sentence.
pub const LINES_MAX: usize = 6;

#[derive(Debug, Clone, Default)]
pub struct ReportAnswer {
    /// Subject or question; empty if the result names it.
    pub asked: String,
    /// Result with its size; empty in a report that answers nothing.
    pub found: String,
    /// State and basis of the result; may be empty.
    pub sure: String,
    /// Next step; may be empty.
    pub advice: String,
    /// The figures behind the result; a terminal shows the first [`LINES_MAX`].
    pub lines: Vec<Headline>,
}

impl ReportAnswer {
    /// Returns the parts as one sentence without a full stop; empty without a result.
    pub fn sentence(&self) -> String {
        if self.found.is_empty() {
            return String::new();
        }
        let ended = |text: &str| text.trim().trim_end_matches('.').to_string();
        let asked = match ended(&self.asked) {
            asked if asked.is_empty() => asked,
            asked if asked.ends_with('?') => asked + " ",
            asked => asked + ": ",
        };
        let sure = match ended(&self.sure) {
            sure if sure.is_empty() => sure,
            sure => format!(" ({sure})"),
        };
        let advice = match ended(&self.advice) {
            advice if advice.is_empty() => advice,
            advice => format!("; {advice}"),
        };
        asked + &ended(&self.found) + &sure + &advice
    }

    /// Returns a conclusion as a part of a sentence: its first letter is small, but for a name's.
    pub fn part(text: &str) -> String {
        let (word, _) = text.split_once(' ').unwrap_or((text, ""));
        let is_plain = word.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
        let mut letters = text.chars();
        match letters.next() {
            Some(first) if is_plain => first.to_lowercase().chain(letters).collect(),
            _ => text.to_string(),
        }
    }

    /// Returns the lines that are shown.
    pub fn shown(&self) -> impl Iterator<Item = &Headline> {
        self.lines.iter().take(LINES_MAX)
    }
}

/// Serialises the sentence and its parts, and each line as a name and a value.
impl Serialize for ReportAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Answer", 6)?;
        fields.serialize_field("sentence", &self.sentence())?;
        fields.serialize_field("asked", &self.asked)?;
        fields.serialize_field("found", &self.found)?;
        fields.serialize_field("sure", &self.sure)?;
        fields.serialize_field("advice", &self.advice)?;
        let lines: Vec<[String; 2]> = self.shown().map(|line| [line.name.clone(), line.line()]).collect();
        fields.serialize_field("lines", &lines)?;
        fields.end()
    }
}

/// One of the most important figures.
#[derive(Debug, Clone)]
pub struct Headline {
    pub name: String,
    pub value: String,
    /// Context of the value: a share, a bound.
    pub aside: String,
}

impl Headline {
    /// Returns value and aside in a line.
    pub fn line(&self) -> String {
        if self.aside.is_empty() { self.value.clone() } else { format!("{}, {}", self.value, self.aside) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_parts_that_there_are() {
        let of = |[asked, found, sure, advice]: [&str; 4]| {
            let [asked, found, sure, advice] = [asked, found, sure, advice].map(String::from);
            ReportAnswer { asked, found, sure, advice, lines: Vec::new() }.sentence()
        };
        assert_eq!(
            of(["Does it pay?", "43% faster.", "8 blocks", "use it."]),
            "Does it pay? 43% faster (8 blocks); use it"
        );
        assert_eq!(of(["redo", "10 commits/s", "", ""]), "redo: 10 commits/s");
        assert_eq!(of(["", "4 ms to 400 ms", "", ""]), "4 ms to 400 ms");
        assert_eq!(of(["redo", "", "VALID", "run it"]), "", "a doubt without a result is no answer");
        let parts = ["The log waits", "DB CPU is all", "PostgreSQL reads", "A scan"].map(ReportAnswer::part);
        assert_eq!(parts, ["the log waits", "DB CPU is all", "PostgreSQL reads", "a scan"]);
    }
}
