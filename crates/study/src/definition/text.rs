//! A study as text: complete, and in one form for each study.
//!
//! Written by hand instead of by serialisation, so that the order suits a reader. The same study
//! has the same bytes, and their hash identifies it.

use super::{Claim, Factor, Published, Study};
use crate::vocabulary::Assignment;
use plumb_proof::design::Order;
use plumb_proof::effect::Change;
use plumb_units::hex;
use plumb_workload::Shown;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

impl Study {
    /// Returns the text; it parses to the same study.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let order = match self.order {
            Order::Shuffled => "shuffled",
            Order::Williams => "williams",
        };
        for (key, value) in [
            ("name", quoted(&self.name)),
            ("title", quoted(&self.title)),
            ("question", quoted(&self.question)),
            ("source", quoted(&self.source)),
            ("target", quoted(self.vocabulary.target())),
            ("blocks", self.blocks.to_string()),
            ("statistic", quoted(&self.measure.name)),
            ("sought", quoted(&format!("{}%", percent(self.sought)))),
            ("order", quoted(order)),
        ] {
            let _ = writeln!(out, "{key} = {value}");
        }
        // Omitted otherwise, so that the hash of every other study stays the same.
        if self.expects_same {
            out.push_str("expects = \"same\"\n");
        }
        if let Some(work) = &self.work {
            let _ = writeln!(out, "workload = {}\n\n[parameters]", quoted(work.workload.name));
            work.values().for_each(|(name, value)| {
                let _ = match value {
                    Shown::Number(number) => writeln!(out, "{name} = {number}"),
                    Shown::Text(text) => writeln!(out, "{name} = {}", quoted(&text)),
                };
            });
        }
        out.push_str(&self.vocabulary.sections());
        out.push_str("\n[settings]\n");
        for set in &self.settings {
            let _ = writeln!(out, "{} = {}", set.name, quoted(&set.value));
        }
        self.factors.iter().for_each(|factor| write_factor(&mut out, factor));
        for generator in &self.generators {
            let names: Vec<String> =
                generator.product.iter().map(|factor| quoted(&self.factors[*factor].name)).collect();
            let name = quoted(&self.factors[generator.factor].name);
            let _ = write!(out, "\n[[generator]]\nfactor = {name}\nproduct = [{}]\n", names.join(", "));
        }
        self.claims.iter().for_each(|claim| self.write_claim(&mut out, claim));
        for bound in &self.bounds {
            let _ = write!(
                out,
                "\n[[bound]]\nstatistic = {}\nper_second_max = {}\nreason = {}\n",
                quoted(&bound.statistic),
                bound.per_second_max,
                quoted(&bound.reason)
            );
        }
        if let Some(published) = &self.published {
            self.write_published(&mut out, published);
        }
        out
    }

    /// Hash of the text, SHA-256 in hexadecimal: equal hashes are equal studies.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.to_toml()))
    }

    fn level(&self, factor: usize, level: usize) -> String {
        quoted(&self.factors[factor].levels[level].label)
    }

    fn held(&self, at: &[(usize, usize)]) -> String {
        let pairs = at.iter().map(|(factor, level)| {
            format!("{} = {}", key(&self.factors[*factor].name), self.level(*factor, *level))
        });
        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
    }

    fn write_claim(&self, out: &mut String, claim: &Claim) {
        let changed = |change: &Change| {
            [
                quoted(&self.factors[change.factor].name),
                self.level(change.factor, change.from),
                self.level(change.factor, change.to),
            ]
        };
        let _ = write!(out, "\n[[claim]]\nname = {}\ntext = {}\n", quoted(&claim.name), quoted(&claim.text));
        let [factor, from, to] = changed(&claim.change);
        let _ = write!(out, "factor = {factor}\nfrom = {from}\nto = {to}\n");
        if let Some(with) = &claim.with {
            let [factor, from, to] = changed(with);
            let _ = writeln!(out, "with = {{ factor = {factor}, from = {from}, to = {to} }}");
        }
        if !claim.at.is_empty() {
            let _ = writeln!(out, "at = {}", self.held(&claim.at));
        }
        let _ = writeln!(out, "expect = {}", quoted(&claim.expects.to_string()));
        if let Some(measure) = &claim.measure {
            let _ = writeln!(out, "statistic = {}", quoted(&measure.name));
        }
        if let Some(phase) = &claim.phase {
            let _ = writeln!(out, "phase = {}", quoted(phase));
        }
    }

    fn write_published(&self, out: &mut String, published: &Published) {
        let name = |factor: &usize| quoted(&self.factors[*factor].name);
        let rows: Vec<String> = published.row_factors.iter().map(name).collect();
        let _ = write!(
            out,
            "\n[published]\ntitle = {}\nsource = {}\ncolumn = {}\nrows = [{}]\ncells = [\n",
            quoted(&published.title),
            quoted(&published.source),
            name(&published.column),
            rows.join(", ")
        );
        for row in &published.rows {
            let at: Vec<(usize, usize)> =
                published.row_factors.iter().copied().zip(row.levels.iter().copied()).collect();
            let times: Vec<String> = row.times.iter().map(|time| quoted(time)).collect();
            let _ = writeln!(out, "    {{ at = {}, times = [{}] }},", self.held(&at), times.join(", "));
        }
        out.push_str("]\n");
    }
}

fn write_factor(out: &mut String, factor: &Factor) {
    let _ = write!(out, "\n[[factor]]\nname = {}\nlevels = [\n", quoted(&factor.name));
    for level in &factor.levels {
        let set = |set: &Assignment| format!("{} = {}", set.name, quoted(&set.value));
        let settings: Vec<String> = level.settings.iter().map(set).collect();
        let label = quoted(&level.label);
        let _ = writeln!(out, "    {{ label = {label}, set = {{ {} }} }},", settings.join(", "));
    }
    out.push_str("]\n");
}

/// Converts a share to per cent, rounded so that the binary fraction does not show.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Quotes a key if TOML requires it.
fn key(name: &str) -> String {
    if name.contains('.') { quoted(name) } else { name.to_string() }
}

/// Formats a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
