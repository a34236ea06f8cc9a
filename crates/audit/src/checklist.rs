//! The checklist: facts that a benchmark must state to be credible.
//!
//! Origins: the eleven flaws that Jonathan Lewis found in a benchmark of block sizes (2005), and
//! the pitfalls of Raasveldt, Holanda, Gubner and Mühleisen, *Fair Benchmarking Considered
//! Difficult* (DBTest 2018). A question without an answer is a reason to call the claim NOT PROVED,
//! never to call it false.

use plumb_units::nearest;

/// A question that a claim may answer.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: &'static str,
    pub(crate) origin: &'static str,
    /// The question, worded to follow "not stated: ".
    pub(crate) asks: &'static str,
    pub(crate) takes: Takes,
}

/// The form of the answers to a question.
#[derive(Debug)]
pub(crate) enum Takes {
    /// The number of runs of each arm.
    Runs,
    /// A word, with the flaw that it reveals; an empty text means no flaw.
    Word(&'static [(&'static str, &'static str)]),
    /// A list, and each word that it lacks is a flaw.
    All(&'static [&'static str]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Good,
    /// A reason not to believe the claim yet.
    Flaw(String),
}

const LEWIS: &str = "Lewis 2005";
const RAASVELDT: &str = "Raasveldt 2018";
/// With fewer runs per arm a sign test cannot give p below 0.05.
const RUNS_LEAST: u32 = 6;
const GOOD: &str = "";

pub(crate) const ITEMS: &[Item] = &[
    Item { name: "runs", origin: LEWIS, asks: "how often each arm ran", takes: Takes::Runs },
    Item {
        name: "shown",
        origin: "all runs or none",
        asks: "which runs the figures are of",
        takes: Takes::Word(&[
            ("all", GOOD),
            ("summary", GOOD),
            ("one", "one run of several is shown, and nothing says how it was chosen"),
            ("best", "the best run of several is shown: the luckier arm wins"),
        ]),
    },
    Item {
        name: "discarded",
        origin: "all runs or none",
        asks: "which runs were left out",
        takes: Takes::Word(&[
            ("none", GOOD),
            ("warm-up", GOOD),
            ("first", "the first run of one arm was left out, and that of the other was not"),
            ("some", "runs were left out without a rule that was written before"),
        ]),
    },
    Item {
        name: "spread",
        origin: LEWIS,
        asks: "how far runs of one arm lie apart",
        takes: Takes::Word(&[
            ("interval", GOOD),
            ("range", GOOD),
            ("deviation", GOOD),
            ("none", "no spread is given: the difference may be that of two runs of the same"),
        ]),
    },
    Item {
        name: "order",
        origin: LEWIS,
        asks: "in which order the arms ran",
        takes: Takes::Word(&[
            ("random", GOOD),
            ("alternating", GOOD),
            ("fixed", "the order never changed: warming, growth and neighbours pass for the effect"),
        ]),
    },
    Item {
        name: "cache",
        origin: RAASVELDT,
        asks: "whether caches were cold or warm",
        takes: Takes::Word(&[
            ("cold", GOOD),
            ("warm", GOOD),
            ("bypassed", GOOD),
            ("mixed", "one arm found what the other had read: cold and warm runs are mixed"),
        ]),
    },
    Item {
        name: "results",
        origin: RAASVELDT,
        asks: "whether results were checked",
        takes: Takes::Word(&[
            ("checked", GOOD),
            ("unchecked", "no result was checked: the faster arm may have done less"),
        ]),
    },
    Item {
        name: "reproducible",
        origin: RAASVELDT,
        asks: "how to repeat it",
        takes: Takes::Word(&[
            ("commands", GOOD),
            ("partly", "commands or data are missing: nobody can repeat it"),
            ("withheld", "what would repeat it is withheld"),
        ]),
    },
    Item {
        name: "tuning",
        origin: RAASVELDT,
        asks: "whether both arms were tuned alike",
        takes: Takes::Word(&[("alike", GOOD), ("unequal", "one arm was tuned and the other was not")]),
    },
    Item {
        name: "arms",
        origin: RAASVELDT,
        asks: "whether the arms differ in the treatment alone",
        takes: Takes::Word(&[
            ("alike", GOOD),
            ("machines", "the arms ran on different machines"),
            ("more", "the arms differ in more than the treatment"),
        ]),
    },
    Item {
        name: "configuration",
        origin: LEWIS,
        asks: "version, storage, memory, settings and data",
        takes: Takes::All(&["version", "storage", "memory", "settings", "data"]),
    },
    Item {
        name: "logging",
        origin: LEWIS,
        asks: "whether redo was written and archived, and the size of its files",
        takes: Takes::Word(&[
            ("stated", GOOD),
            ("none", "nothing was logged: the backup that this obliges to is no part of the time"),
            ("irrelevant", GOOD),
        ]),
    },
    Item {
        name: "waits",
        origin: LEWIS,
        asks: "where the time went",
        takes: Takes::Word(&[
            ("shown", GOOD),
            ("partly", "a part of the time is in no wait that is shown"),
            ("none", "no waits are shown: the slower run may have met a log switch"),
        ]),
    },
    Item {
        name: "timed",
        origin: LEWIS,
        asks: "whether what was timed is what is claimed",
        takes: Takes::Word(&[
            ("same", GOOD),
            ("another", "what was timed is another operation than the claim is about"),
        ]),
    },
    Item {
        name: "volume",
        origin: LEWIS,
        asks: "whether the data are larger than what caches and deferred writes take up",
        takes: Takes::Word(&[
            ("beyond", GOOD),
            ("below", "the data fit what caches and deferred writes take up: nothing follows for more"),
        ]),
    },
    Item {
        name: "data",
        origin: LEWIS,
        asks: "whether the data are like the reader's",
        takes: Takes::Word(&[
            ("alike", GOOD),
            ("unlike", "the rows are unlike those that the claim is about"),
        ]),
    },
];

impl Item {
    pub(crate) fn answer(&self, value: &toml::Value) -> Result<Answer, String> {
        let takes = || format!("{} = {value}: expected {}", self.name, self.expected());
        match &self.takes {
            Takes::Runs => {
                let runs =
                    value.as_integer().and_then(|runs| u32::try_from(runs).ok()).filter(|runs| *runs > 0);
                runs.map(of_runs).ok_or_else(takes)
            }
            Takes::Word(words) => {
                let word = value.as_str().ok_or_else(takes)?;
                let found = words.iter().find(|(known, _)| *known == word);
                let near = nearest(word, words.iter().map(|(known, _)| *known));
                let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
                let (_, wrong) = found.ok_or_else(|| takes() + &near)?;
                Ok(if wrong.is_empty() { Answer::Good } else { Answer::Flaw((*wrong).to_string()) })
            }
            Takes::All(wanted) => {
                let given = value.as_array().ok_or_else(takes)?;
                let given: Vec<&str> = given.iter().filter_map(toml::Value::as_str).collect();
                if given.iter().any(|word| !wanted.contains(word)) {
                    return Err(takes());
                }
                let missing: Vec<&str> =
                    wanted.iter().copied().filter(|word| !given.contains(word)).collect();
                let flaw = || Answer::Flaw(format!("{} not stated", missing.join(", ")));
                Ok(if missing.is_empty() { Answer::Good } else { flaw() })
            }
        }
    }

    fn expected(&self) -> String {
        match &self.takes {
            Takes::Runs => "a whole number of runs, 1 or more".to_string(),
            Takes::Word(words) => words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "),
            Takes::All(words) => format!("a list of {}", words.join(", ")),
        }
    }
}

/// Judges the number of runs: the least p of a sign test after n pairs is 2 / 2^n.
fn of_runs(runs: u32) -> Answer {
    if runs >= RUNS_LEAST {
        return Answer::Good;
    }
    let p = 2f64.powi(1 - i32::try_from(runs).unwrap_or(i32::MAX));
    let shown =
        if runs == 1 { "one run of each arm".to_string() } else { format!("{runs} runs of each arm") };
    Answer::Flaw(format!("{shown}: no test of them has a p below {p:.2}; {RUNS_LEAST} can have 0.03"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_of_the_words_and_few_runs_prove_nothing() {
        let item = |name: &str| ITEMS.iter().find(|item| item.name == name).expect("an item");
        assert_eq!(item("runs").answer(&6.into()), Ok(Answer::Good));
        assert!(matches!(item("runs").answer(&5.into()), Ok(Answer::Flaw(text)) if text.contains("0.06")));
        assert!(item("runs").answer(&0.into()).is_err());
        assert_eq!(item("order").answer(&"random".into()), Ok(Answer::Good));
        let refused = item("order").answer(&"fixd".into()).expect_err("no word");
        assert!(refused.contains("did you mean fixed?"), "{refused}");
        let list = toml::Value::Array(vec!["version".into(), "data".into()]);
        let expected = Answer::Flaw("storage, memory, settings not stated".to_string());
        assert_eq!(item("configuration").answer(&list), Ok(expected));
    }
}
