//! Reads a study file (TOML) and rejects what cannot run, with file and line.
//!
//! Two steps. First the text becomes plain values with their positions; this finds missing,
//! misspelt and mistyped values. Then names become indices: settings are found in the target's
//! vocabulary, levels and factors in the file itself. No run starts before both steps succeed.
//!
//! `docs/studies.md` shows the form.

use super::draft::{Draft, Places, StudyFileError};
use super::published::{Published, PublishedRow, minutes};
use super::{Bound, Claim, Factor, Generator, Level, Of, Study};
use crate::vocabulary::{Assignment, Kinds, Measure, Refusal, TargetKind, Vocabulary};
use plumb_proof::design::Order;
use plumb_proof::effect::Change;
use plumb_units::nearest;
use plumb_workload::{Work, Workload};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Value of a setting: text, a number or a truth value.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Text(text) => text.clone(),
            Word::Number(number) => number.to_string(),
            Word::Flag(flag) => flag.to_string(),
        }
    }
}

type Text = Spanned<String>;
type Words = BTreeMap<Text, Spanned<Word>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStudy {
    name: Text,
    title: String,
    question: String,
    #[serde(default)]
    source: String,
    workload: Option<Text>,
    /// Two parameters of the workload are also accepted at the top.
    rows: Option<Spanned<Word>>,
    data_seed: Option<Spanned<Word>>,
    #[serde(default)]
    parameters: Words,
    blocks: Spanned<toml::Value>,
    statistic: Option<Text>,
    sought: Option<Text>,
    order: Option<Text>,
    /// `same` allows levels with equal settings.
    expects: Option<Text>,
    #[serde(default)]
    settings: Words,
    factor: Vec<RawFactor>,
    #[serde(default)]
    generator: Vec<RawGenerator>,
    claim: Vec<RawClaim>,
    #[serde(default)]
    bound: Vec<RawBound>,
    published: Option<RawPublished>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFactor {
    name: Text,
    /// May be omitted if the factor has the setting's name; levels are then values of that setting.
    setting: Option<Text>,
    /// Each is read as a [`RawLevel`], with a refusal that names the factor.
    levels: Vec<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawLevel {
    /// A value of the factor's setting.
    Value(Word),
    Labelled(RawLabelled),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLabelled {
    label: Word,
    set: BTreeMap<String, Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGenerator {
    factor: Text,
    product: Vec<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    name: Text,
    text: String,
    factor: Text,
    from: Spanned<Word>,
    to: Spanned<Word>,
    with: Option<RawWith>,
    #[serde(default)]
    at: Words,
    expect: Text,
    statistic: Option<Text>,
    phase: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWith {
    factor: Text,
    from: Spanned<Word>,
    to: Spanned<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBound {
    statistic: Text,
    per_second_max: Spanned<Word>,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    title: String,
    source: String,
    column: Text,
    rows: Vec<Text>,
    cells: Vec<RawCells>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCells {
    at: Words,
    times: Vec<Text>,
}

/// Smallest effect of interest if the file names none, a share.
const SOUGHT: f64 = 0.05;
/// Error allowed to a study.
pub(super) const ALPHA: f64 = 0.05;
/// Most blocks, because a larger number is a typing error.
pub(super) const BLOCKS_MAX: i64 = 1000;
/// Largest number of characters of a label.
const LABEL_CHARACTERS: usize = 200;

/// Parses and checks a study file; `file` names it in errors. Fails with the
/// first error and its line.
pub fn parse(file: &str, text: &str, kinds: &Kinds) -> Result<Study, StudyFileError> {
    Draft::of_text(file, text)?.check(kinds)
}

/// Parses the text of a study kept in a bundle. Rules that apply only to new studies are skipped,
/// so that its figures stay readable.
pub fn parse_kept(file: &str, text: &str, kinds: &Kinds) -> Result<Study, StudyFileError> {
    Draft::of_text(file, text)?.check_kept(kinds)
}

impl Draft<'_> {
    pub fn check(self, kinds: &Kinds) -> Result<Study, StudyFileError> {
        read(self.whole, &self.places, kinds, Age::New)
    }

    /// Replaces keys by those of the table for the draft's target, and removes such tables.
    ///
    /// # Errors
    /// If there is no such target, or its table is none.
    pub fn replace_for(&mut self, kinds: &Kinds) -> Result<(), StudyFileError> {
        let kind = kind_of(&self.whole, &self.places, kinds)?;
        replace(&mut self.whole, kind, kinds).map_err(|refusal| self.places.of(refusal))
    }

    /// Checks the draft of a study kept in a bundle. Rules for new studies are skipped, because the
    /// study has already run and its figures must stay readable.
    fn check_kept(self, kinds: &Kinds) -> Result<Study, StudyFileError> {
        read(self.whole, &self.places, kinds, Age::Kept)
    }
}

/// A new study, or one kept in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    New,
    Kept,
}

/// Checks the table of a draft.
fn read(
    mut whole: DeTable<'_>,
    places: &Places<'_>,
    kinds: &Kinds,
    age: Age,
) -> Result<Study, StudyFileError> {
    let kind = kind_of(&whole, places, kinds)?;
    replace(&mut whole, kind, kinds).map_err(|refusal| places.of(refusal))?;
    let sections = sections(&mut whole, kind);
    whole.remove("target");
    let vocabulary = kind.vocabulary(Deserializer::from(sections)).map_err(|refusal| places.of(refusal))?;
    let raw = RawStudy::deserialize(Deserializer::from(Spanned::new(0..0, whole)));
    let raw = raw.map_err(|error| places.of(error.into()))?;
    Reader { places, vocabulary, age }.study(&raw)
}

/// Returns the kind of target that a draft names; the first without a name.
fn kind_of<'k>(
    whole: &DeTable<'_>,
    places: &Places<'_>,
    kinds: &'k Kinds,
) -> Result<&'k dyn TargetKind, StudyFileError> {
    let named = whole.get("target").and_then(|target| target.get_ref().as_str());
    kinds.iter().copied().find(|kind| named.is_none_or(|named| named == kind.name())).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let span = whole.get("target").map_or(0..0, Spanned::span);
        let (named, names) = (named.unwrap_or_default(), names.join(", "));
        // A mistyped address, also in words as `host=h password=p`, may have a password.
        let what = match named.contains([':', '@', '/', '=']) {
            true => format!(
                "there is no such target; it takes {names}, and --target also an address: postgres://USER@HOST/DATABASE, \
                 with its scheme in small letters"
            ),
            false => format!("there is no target {named:?}; it takes {names}"),
        };
        places.at(span, &what)
    })
}

/// Removes the tables that say what differs on a kind of target; the keys of this kind's table
/// replace those of the file.
fn replace(whole: &mut DeTable<'_>, kind: &dyn TargetKind, kinds: &Kinds) -> Result<(), Refusal> {
    let tables = kinds.iter().filter_map(|other| other.replaces());
    for (name, table) in tables.filter_map(|name| Some((name, whole.remove(name)?))).collect::<Vec<_>>() {
        let place = table.span();
        let DeValue::Table(keys) = table.into_inner() else {
            return Err(Refusal {
                place,
                what: format!("[{name}] is a table of keys that replace those of the file"),
            });
        };
        if kind.replaces() == Some(name) {
            whole.extend(keys);
        }
    }
    Ok(())
}

/// Removes from a file the sections that its kind of target parses itself.
fn sections<'i>(whole: &mut DeTable<'i>, kind: &dyn TargetKind) -> Spanned<DeTable<'i>> {
    let taken = kind.sections().iter().filter_map(|name| whole.remove_entry(*name)).collect();
    Spanned::new(0..0, taken)
}

struct Reader<'a> {
    places: &'a Places<'a>,
    vocabulary: Vocabulary,
    age: Age,
}

impl Reader<'_> {
    fn at(&self, span: Range<usize>, what: &str) -> StudyFileError {
        self.places.at(span, what)
    }

    fn study(&self, raw: &RawStudy) -> Result<Study, StudyFileError> {
        self.plain_name(&raw.name, "a study's name")?;
        let settings = self.assignments(&raw.settings)?;
        let factors = self.factors(raw, &settings)?;
        let mut study = Study {
            name: raw.name.get_ref().clone(),
            title: raw.title.clone(),
            question: raw.question.clone(),
            source: raw.source.clone(),
            work: self.work(raw)?,
            vocabulary: self.vocabulary.clone(),
            blocks: self.blocks(&raw.blocks)?,
            measure: self.measure(raw.statistic.as_ref())?,
            sought: self.sought(raw.sought.as_ref())?,
            alpha: ALPHA,
            order: self.order(raw.order.as_ref())?,
            expects_same: self.expects_same(raw.expects.as_ref())?,
            settings,
            generators: self.generators(&raw.generator, &factors)?,
            factors,
            claims: Vec::new(),
            bounds: raw.bound.iter().map(|bound| self.bound(bound)).collect::<Result<_, _>>()?,
            published: None,
        };
        if self.age == Age::New {
            let settings: Vec<&Assignment> = study.all_settings().collect();
            self.vocabulary.require_new(&settings).map_err(|refusal| self.places.of(refusal))?;
        }
        self.consistent(raw, &study)?;
        study.claims = self.claims(&raw.claim, &study)?;
        self.require_use(&study)?;
        study.published =
            raw.published.as_ref().map(|published| self.published(published, &study)).transpose()?;
        Ok(study)
    }

    /// Names appear in paths, in names of arms and on the command line.
    fn plain_name(&self, name: &Text, what: &str) -> Result<(), StudyFileError> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let text = name.get_ref();
        if !text.is_empty() && text.len() <= 64 && !text.starts_with(['.', '-']) && text.chars().all(plain) {
            return Ok(());
        }
        Err(self.at(name.span(), &format!("{text:?}: {what} has 1 to 64 letters, digits, -, _ or .")))
    }

    /// Labels appear in names of arms; a directory is a label, too.
    fn short_label(&self, label: &str, span: Range<usize>) -> Result<(), StudyFileError> {
        if (1..=LABEL_CHARACTERS).contains(&label.chars().count()) && !label.contains(char::is_control) {
            return Ok(());
        }
        let what = format!(
            "{label:?}: a level's label has 1 to {LABEL_CHARACTERS} characters, none of them a control character"
        );
        Err(self.at(span, &what))
    }

    /// Reads the workload with its parameters, if the target accepts one.
    fn work(&self, raw: &RawStudy) -> Result<Option<Work>, StudyFileError> {
        let mut work = self.workload(raw)?.map(Work::of);
        let stated = [("rows", &raw.rows), ("seed", &raw.data_seed)];
        let stated = stated.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let named = raw.parameters.iter().map(|(name, value)| (name.get_ref().as_str(), value));
        for (name, value) in stated.chain(named) {
            let refused = match &mut work {
                Some(work) => work.set(name, &value.get_ref().text()).err(),
                None => Some(format!("{name}: without a workload there is no such parameter")),
            };
            refused.map_or(Ok(()), |what| Err(self.at(value.span(), &what)))?;
        }
        Ok(work)
    }

    fn workload(&self, raw: &RawStudy) -> Result<Option<&'static Workload>, StudyFileError> {
        let known = self.vocabulary.workloads();
        let names = || known.iter().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
        match &raw.workload {
            None if known.is_empty() => Ok(None),
            None => Err(self.at(0..0, &format!("missing field `workload`; it takes {}", names()))),
            Some(name) if known.is_empty() => {
                let what =
                    format!("a {} has no workload; its own tables say what is run", self.vocabulary.target());
                Err(self.at(name.span(), &what))
            }
            Some(name) => {
                let found = known.iter().find(|workload| workload.name == name.get_ref().as_str());
                let near = nearest(name.get_ref(), known.iter().map(|workload| workload.name));
                let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
                let what =
                    || format!("there is no workload {:?}; it takes {}{near}", name.get_ref(), names());
                found.copied().map(Some).ok_or_else(|| self.at(name.span(), &what()))
            }
        }
    }

    fn blocks(&self, blocks_given: &Spanned<toml::Value>) -> Result<usize, StudyFileError> {
        let found = blocks_given.get_ref();
        let number = found.as_integer().filter(|number| (1..=BLOCKS_MAX).contains(number));
        let blocks = number.and_then(|number| usize::try_from(number).ok());
        let what =
            || format!("blocks = {found}: expected a whole number from 1 to {BLOCKS_MAX}, as in blocks = 9");
        blocks.ok_or_else(|| self.at(blocks_given.span(), &what()))
    }

    fn sought(&self, sought: Option<&Text>) -> Result<f64, StudyFileError> {
        let Some(text) = sought else { return Ok(SOUGHT) };
        let number: Option<f64> = text.get_ref().strip_suffix('%').and_then(|number| number.parse().ok());
        number.filter(|number| (0.01..100.0).contains(number)).map(|number| number / 100.0).ok_or_else(|| {
            let what =
                format!("sought = {:?}: expected a percentage from 0.01% to 100%, as in 5%", text.get_ref());
            self.at(text.span(), &what)
        })
    }

    fn order(&self, order: Option<&Text>) -> Result<Order, StudyFileError> {
        match order.map(|text| text.get_ref().as_str()) {
            None | Some("shuffled") => Ok(Order::Shuffled),
            Some("williams") => Ok(Order::Williams),
            Some(other) => {
                let span = order.map_or(0..0, Spanned::span);
                Err(self.at(span, &format!("there is no order {other:?}; it takes shuffled or williams")))
            }
        }
    }

    fn expects_same(&self, expects: Option<&Text>) -> Result<bool, StudyFileError> {
        match expects.map(|text| (text.get_ref().as_str(), text.span())) {
            None => Ok(false),
            Some(("same", _)) => Ok(true),
            Some((other, span)) => {
                Err(self.at(span, &format!("expects = {other:?}: it takes same, or is left out")))
            }
        }
    }

    /// Rejects levels with equal settings: comparing the program with itself must be requested.
    fn require_difference(&self, given: &RawFactor, factor: &Factor) -> Result<(), StudyFileError> {
        for to in 1..factor.levels.len() {
            if let Some(from) = (0..to).find(|from| factor.differing(*from, to).is_empty()) {
                let what = format!(
                    "levels {} and {} of the factor {} set the same; give one another value, or say expects = \"same\" at \
                     the top if they are to be compared with each other",
                    factor.levels[from].label, factor.levels[to].label, factor.name
                );
                return Err(self.at(given.levels[to].span(), &what));
            }
        }
        Ok(())
    }

    fn measure(&self, name: Option<&Text>) -> Result<Measure, StudyFileError> {
        let Some(name) = name else { return Ok(Measure::elapsed()) };
        self.vocabulary.measure(name.get_ref()).ok_or_else(|| {
            let what = format!(
                "there is no statistic {:?}; it takes {}",
                name.get_ref(),
                self.vocabulary.measures()
            );
            self.at(name.span(), &what)
        })
    }

    fn assignment(
        &self,
        name: &str,
        span: &Range<usize>,
        value: &Word,
    ) -> Result<Assignment, StudyFileError> {
        let found = self.vocabulary.setting(name, &value.text(), &self.places.origin(span));
        let (facts, value) = found.map_err(StudyFileError::new)?;
        Ok(Assignment { name: facts.name, value })
    }

    fn assignments(&self, words: &Words) -> Result<Vec<Assignment>, StudyFileError> {
        let set = |(name, value): (&Text, &Spanned<Word>)| {
            self.assignment(name.get_ref(), &value.span(), value.get_ref())
        };
        words.iter().map(set).collect()
    }

    fn factors(&self, raw: &RawStudy, fixed: &[Assignment]) -> Result<Vec<Factor>, StudyFileError> {
        let mut factors: Vec<Factor> = Vec::new();
        for given in &raw.factor {
            self.plain_name(&given.name, "a factor's name")?;
            let name = given.name.get_ref();
            if factors.iter().any(|known| known.name == *name) {
                return Err(self.at(given.name.span(), &format!("there are two factors {name}; rename one")));
            }
            let factor = Factor { name: name.clone(), levels: self.levels(given)? };
            for set in factor.levels.iter().flat_map(|level| &level.settings) {
                self.require_own(given, &factor, set, fixed, &factors)?;
            }
            if !self.expects_same(raw.expects.as_ref())? {
                self.require_difference(given, &factor)?;
            }
            factors.push(factor);
        }
        Ok(factors)
    }

    /// Checks that a setting belongs to one factor, or is fixed, not both.
    fn require_own(
        &self,
        given: &RawFactor,
        factor: &Factor,
        set: &Assignment,
        fixed: &[Assignment],
        others: &[Factor],
    ) -> Result<(), StudyFileError> {
        if fixed.iter().any(|known| known.name == set.name) {
            let what = format!(
                "{} is fixed for all arms and varied by the factor {}; leave one of them out",
                set.name, factor.name
            );
            return Err(self.at(given.name.span(), &what));
        }
        let sets = |other: &&Factor| {
            other.levels.iter().flat_map(|level| &level.settings).any(|known| known.name == set.name)
        };
        if let Some(other) = others.iter().find(sets) {
            let what = format!(
                "{} is varied by the factors {} and {}; one setting belongs to one factor",
                set.name, other.name, factor.name
            );
            return Err(self.at(given.name.span(), &what));
        }
        Ok(())
    }

    fn levels(&self, given: &RawFactor) -> Result<Vec<Level>, StudyFileError> {
        let mut levels: Vec<Level> = Vec::new();
        for level in &given.levels {
            let level_read = self.level(given, level)?;
            if levels.iter().any(|known| known.label == level_read.label) {
                let what = format!("factor {} has two levels {}", given.name.get_ref(), level_read.label);
                return Err(self.at(level.span(), &what));
            }
            levels.push(level_read);
        }
        if levels.len() < 2 {
            let what = format!(
                "factor {} has {} level{}; what is varied has at least 2",
                given.name.get_ref(),
                levels.len(),
                if levels.len() == 1 { "" } else { "s" }
            );
            return Err(self.at(given.name.span(), &what));
        }
        Ok(levels)
    }

    fn level(&self, given: &RawFactor, level: &Spanned<toml::Value>) -> Result<Level, StudyFileError> {
        let (factor, span) = (given.name.get_ref(), level.span());
        // A factor may have the name of its setting.
        let own =
            |value: &Word| self.vocabulary.setting(factor, &value.text(), "").is_ok().then_some(&given.name);
        match (RawLevel::deserialize(level.get_ref().clone()), &given.setting) {
            (Ok(RawLevel::Value(value)), setting) => {
                let Some(setting) = setting.as_ref().or_else(|| own(&value)) else {
                    let what = format!(
                        "factor {factor}: a level that is a value needs the setting it is a value of: setting = \"...\"; {}",
                        self.vocabulary.settings()
                    );
                    return Err(self.at(span, &what));
                };
                self.short_label(&value.text(), span.clone())?;
                let set = self.assignment(setting.get_ref(), &span, &value)?;
                Ok(Level { label: value.text(), settings: vec![set] })
            }
            (_, Some(setting)) => {
                let what = format!(
                    "factor {factor} has a setting, and a level of it sets others; leave setting out"
                );
                Err(self.at(setting.span(), &what))
            }
            (Ok(RawLevel::Labelled(RawLabelled { label, set })), None) => {
                self.short_label(&label.text(), span.clone())?;
                let settings = set.iter().map(|(name, value)| self.assignment(name, &span, value));
                Ok(Level { label: label.text(), settings: settings.collect::<Result<_, _>>()? })
            }
            (Err(_), None) => {
                let form = "{ label = \"TRUE\", set = { filesystemio_options = \"setall\" } }";
                let what = format!("factor {factor}: a level is a value of its setting, or {form}");
                Err(self.at(span, &what))
            }
        }
    }

    fn generators(&self, raw: &[RawGenerator], factors: &[Factor]) -> Result<Vec<Generator>, StudyFileError> {
        let free = factors.len().saturating_sub(raw.len());
        let mut generators = Vec::new();
        for (place, given) in raw.iter().enumerate() {
            let factor = self.factor(&given.factor, factors)?;
            if factor != free + place {
                let what = format!(
                    "the factor {} is generated and must follow all free ones, in the order of the generators",
                    given.factor.get_ref()
                );
                return Err(self.at(given.factor.span(), &what));
            }
            let product =
                given.product.iter().map(|name| self.factor(name, factors)).collect::<Result<_, _>>()?;
            generators.push(Generator { factor, product });
        }
        Ok(generators)
    }

    fn bound(&self, raw: &RawBound) -> Result<Bound, StudyFileError> {
        let measure = self.measure(Some(&raw.statistic))?;
        let text = raw.per_second_max.get_ref().text();
        let most = plumb_units::parse_size(&text).ok().filter(|most| *most > 0).ok_or_else(|| {
            let what = format!("per_second_max = {text}: expected a number above 0, as in 2G");
            self.at(raw.per_second_max.span(), &what)
        })?;
        Ok(Bound { statistic: measure.name, per_second_max: most as f64, reason: raw.reason.clone() })
    }

    /// Rejects an impossible design, and arms whose settings contradict each other.
    fn consistent(&self, raw: &RawStudy, study: &Study) -> Result<(), StudyFileError> {
        let place = raw.factor.first().map_or(0..0, |factor| factor.name.span());
        let design = study.design().map_err(|error| self.at(place.clone(), &error.to_string()))?;
        for levels in &design.arms {
            self.vocabulary
                .consistent(&study.arm_settings(levels))
                .map_err(|why| self.at(place.clone(), &format!("arm {}: {why}", study.arm_name(levels))))?;
        }
        Ok(())
    }

    /// Rejects a declared measure that no comparison uses.
    fn require_use(&self, study: &Study) -> Result<(), StudyFileError> {
        let own = study.claims.iter().filter_map(|claim| claim.measure.as_ref());
        let used: Vec<&str> = own.chain([&study.measure]).map(|measure| measure.name.as_str()).collect();
        let idle = self.vocabulary.declared().into_iter().find(|(name, _)| !used.contains(&name.as_str()));
        let Some((name, span)) = idle else { return Ok(()) };
        let what = format!(
            "[measure.{name}] is declared, and nothing is compared by it: say statistic = \"{name}\" at the top of the file \
             or in a [[claim]], or leave it out"
        );
        Err(self.at(span, &what))
    }

    fn factor(&self, name: &Text, factors: &[Factor]) -> Result<usize, StudyFileError> {
        factors.iter().position(|factor| factor.name == *name.get_ref()).ok_or_else(|| {
            let known: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            let what =
                format!("there is no factor {:?} in this study; it has {}", name.get_ref(), known.join(", "));
            self.at(name.span(), &what)
        })
    }

    fn level_of(&self, factor: &Factor, label: &Spanned<Word>) -> Result<usize, StudyFileError> {
        let text = label.get_ref().text();
        // A truth value is accepted where the label is a word such as TRUE.
        let found = factor.level(&text).or_else(|| factor.level(&text.to_uppercase()));
        found.ok_or_else(|| {
            let known: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
            let what = format!("factor {} has no level {text:?}; it has {}", factor.name, known.join(", "));
            self.at(label.span(), &what)
        })
    }

    fn change(
        &self,
        factor: &Text,
        from: &Spanned<Word>,
        to: &Spanned<Word>,
        study: &Study,
    ) -> Result<Change, StudyFileError> {
        let index = self.factor(factor, &study.factors)?;
        let levels = &study.factors[index];
        let (from_level, to_level) = (self.level_of(levels, from)?, self.level_of(levels, to)?);
        if from_level == to_level {
            return Err(self.at(to.span(), "from and to are the same level: nothing is changed"));
        }
        Ok(Change { factor: index, from: from_level, to: to_level })
    }

    fn at_levels(&self, at: &Words, study: &Study) -> Result<Vec<(usize, usize)>, StudyFileError> {
        let held = at.iter().map(|(name, label)| {
            let factor = self.factor(name, &study.factors)?;
            Ok((factor, self.level_of(&study.factors[factor], label)?))
        });
        let mut held: Vec<(usize, usize)> = held.collect::<Result<_, _>>()?;
        held.sort_unstable();
        Ok(held)
    }

    fn claims(&self, raw: &[RawClaim], study: &Study) -> Result<Vec<Claim>, StudyFileError> {
        if raw.is_empty() {
            return Err(self.at(0..0, "the study claims nothing; write a [[claim]] before the run"));
        }
        let mut claims: Vec<Claim> = Vec::new();
        for given in raw {
            self.plain_name(&given.name, "a claim's name")?;
            if claims.iter().any(|known| known.name == *given.name.get_ref()) {
                let what = format!("there are two claims {}; rename one", given.name.get_ref());
                return Err(self.at(given.name.span(), &what));
            }
            claims.push(self.claim(given, study)?);
        }
        Ok(claims)
    }

    fn claim(&self, given: &RawClaim, study: &Study) -> Result<Claim, StudyFileError> {
        let change = self.change(&given.factor, &given.from, &given.to, study)?;
        let with = given.with.as_ref();
        let with = with.map(|with| self.change(&with.factor, &with.from, &with.to, study)).transpose()?;
        let at = self.at_levels(&given.at, study)?;
        let moved = [Some(change.factor), with.map(|with| with.factor)];
        if let Some((factor, _)) = at.iter().find(|(factor, _)| moved.contains(&Some(*factor))) {
            let what =
                format!("{} is changed by this claim and held at one level", study.factors[*factor].name);
            return Err(self.at(given.name.span(), &what));
        }
        if with.is_some_and(|with| with.factor == change.factor) {
            return Err(
                self.at(given.name.span(), "an interaction is between two factors, and this names one twice")
            );
        }
        let (expects, of) = Claim::parse(given.expect.get_ref()).ok_or_else(|| {
            let what = format!(
                "expect = {:?}: it takes faster, slower, faster by at least 5%, slower by at least 5%, equal within 2%, \
                 not slower by 3%, or differs; each also in p95, and those without at least on average",
                given.expect.get_ref()
            );
            self.at(given.expect.span(), &what)
        })?;
        let claim = Claim {
            name: given.name.get_ref().clone(),
            text: given.text.clone(),
            change,
            with,
            at,
            expects,
            of,
            measure: given.statistic.as_ref().map(|name| self.measure(Some(name))).transpose()?,
            phase: given.phase.as_ref().map(|name| self.phase(name, study)).transpose()?,
        };
        if !of.is_typical() && claim.with.is_some() {
            return Err(self.at(given.expect.span(), "an interaction has no average and no p95"));
        }
        self.require_arms(given, &claim, study)?;
        Ok(claim)
    }

    /// Checks that runs of the workload have this phase.
    fn phase(&self, name: &Text, study: &Study) -> Result<String, StudyFileError> {
        let Some(work) = &study.work else {
            let what = format!("a {} has no phases that a claim could name", self.vocabulary.target());
            return Err(self.at(name.span(), &what));
        };
        let names: Vec<&str> = work.workload.phases.iter().map(|phase| phase.name()).collect();
        if names.contains(&name.get_ref().as_str()) {
            return Ok(name.get_ref().clone());
        }
        let what = format!(
            "there is no phase {:?} of {}; it takes {}",
            name.get_ref(),
            work.workload.name,
            names.join(", ")
        );
        Err(self.at(name.span(), &what))
    }

    /// Rejects a claim without arms, or with unequal sides, as in a fraction of a design.
    fn require_arms(&self, given: &RawClaim, claim: &Claim, study: &Study) -> Result<(), StudyFileError> {
        let design = study.design().map_err(|error| self.at(given.name.span(), &error.to_string()))?;
        let row = vec![1.0; design.arms.len() + 1];
        let seen = plumb_proof::effect::Observations::new(row.len(), &[row])
            .map_err(|error| self.at(given.name.span(), &error.to_string()))?;
        claim.contrast(&design, &seen, (0, design.arms.len())).map_err(|error| {
            self.at(given.name.span(), &format!("this design has no such comparison: {error}"))
        })?;
        let arms = claim.sides(&design).to.len();
        match claim.of == Of::P95 && arms > 1 {
            true => Err(self.at(
                given.expect.span(),
                &format!("a p95 is of one arm, and this compares {arms} with {arms}: hold the other factors by `at`"),
            )),
            false => Ok(()),
        }
    }

    fn published(&self, raw: &RawPublished, study: &Study) -> Result<Published, StudyFileError> {
        let column = self.factor(&raw.column, &study.factors)?;
        let row_factors =
            raw.rows.iter().map(|name| self.factor(name, &study.factors)).collect::<Result<Vec<_>, _>>()?;
        let columns = study.factors[column].levels.len();
        let mut rows = Vec::new();
        for cells in &raw.cells {
            let at = self.at_levels(&cells.at, study)?;
            let level = |factor: &usize| at.iter().find(|(held, _)| held == factor).map(|(_, level)| *level);
            let levels: Option<Vec<usize>> = row_factors.iter().map(level).collect();
            let place = cells.times.first().map_or_else(|| raw.column.span(), Spanned::span);
            let Some(levels) = levels.filter(|levels| levels.len() == at.len()) else {
                return Err(self.at(place, "a row of the published table names each of its row factors once"));
            };
            if cells.times.len() != columns {
                let what = format!("{} times in a row of {columns} columns", cells.times.len());
                return Err(self.at(place, &what));
            }
            let wrong = |time: &&Text| !time.get_ref().is_empty() && minutes(time.get_ref()).is_none();
            if let Some(time) = cells.times.iter().find(wrong) {
                let what = format!("{:?}: a time is minutes:seconds, or empty", time.get_ref());
                return Err(self.at(time.span(), &what));
            }
            rows.push(PublishedRow {
                levels,
                times: cells.times.iter().map(|time| time.get_ref().clone()).collect(),
            });
        }
        Ok(Published { title: raw.title.clone(), source: raw.source.clone(), column, row_factors, rows })
    }
}
