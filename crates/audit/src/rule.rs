//! The rules of arithmetic: a table of relations among figures.
//!
//! A rule has roles, which a claim file fills with figures, and one or more ways to compute one
//! role from the others. A relation holds if any reading of its units and any way give an interval
//! that meets the stated one. So a relation fails only if every reading of its text fails. The
//! report says if only one reading holds.
//!
//! Every way is monotone in each figure, so its interval is that of the corners.

use plumb_figures::relation::Test;
use plumb_figures::unit::Dimension;

/// A role in a relation.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
}

/// The figures that fill a role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Takes {
    /// A figure, or a list of one for each case.
    One,
    Many,
    /// The name of a physical bound.
    Bound,
    /// A threshold of the rule itself, which no file states.
    Threshold(f64),
}

/// The consequence of a relation that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The claim contradicts itself, or physics.
    Contradiction,
    /// The figures prove less than is claimed.
    Flaw,
}

/// One way to compute the stated figure.
#[derive(Debug)]
pub(crate) struct Way {
    /// Meaning of the stated word in this way; empty if there is one way.
    pub(crate) name: &'static str,
    /// Computes the value from those of the roles.
    pub(crate) of: fn(&[Vec<f64>]) -> f64,
}

/// A rule: a relation that figures may have.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// The author of the question, or the fact of arithmetic.
    pub(crate) origin: &'static str,
    pub(crate) roles: &'static [Role],
    /// The computed side, with role names in braces.
    pub(crate) left: &'static str,
    /// Separator of the figures of a role that takes several.
    pub(crate) between: &'static str,
    /// Index of the stated role; the others are given.
    pub(crate) stated: usize,
    pub(crate) ways: &'static [Way],
    /// The ways if the first role is a rate, of which more is better.
    pub(crate) ways_of_rate: &'static [Way],
    pub(crate) dimension: fn(&[Dimension]) -> Option<Dimension>,
    pub(crate) test: Test,
    pub(crate) consequence: Consequence,
    /// Words for a relation that does not hold.
    pub(crate) means: &'static str,
}

const fn one(name: &'static str) -> Role {
    Role { name, takes: Takes::One }
}

const fn many(name: &'static str) -> Role {
    Role { name, takes: Takes::Many }
}

const fn threshold(value: f64) -> Role {
    Role { name: "threshold", takes: Takes::Threshold(value) }
}

const fn bound(name: &'static str) -> Role {
    Role { name, takes: Takes::Bound }
}

fn alike(dimensions: &[Dimension]) -> Option<Dimension> {
    let first = *dimensions.first()?;
    dimensions[..dimensions.len() - 1].iter().all(|one| *one == first).then_some(first)
}

fn ratio(dimensions: &[Dimension]) -> Option<Dimension> {
    alike(dimensions).map(|_| Dimension::default())
}

fn quotient(dimensions: &[Dimension]) -> Option<Dimension> {
    Some(dimensions[0].over(dimensions[1]))
}

const PRODUCT: &[Way] = &[Way { name: "", of: |roles| roles[0].iter().product() }];
const SUM: &[Way] = &[Way { name: "", of: |roles| roles[0].iter().sum() }];
const QUOTIENT: &[Way] = &[Way { name: "", of: |roles| roles[0][0] / roles[1][0] }];
const LESS: Way = Way { name: "time saved", of: |roles| 1.0 - roles[1][0] / roles[0][0] };
const FASTER: Way = Way { name: "speed gained", of: |roles| roles[0][0] / roles[1][0] - 1.0 };
/// Of a rate more is faster.
const RATE_LESS: Way = Way { name: "time saved", of: |roles| 1.0 - roles[0][0] / roles[1][0] };
const RATE_FASTER: Way = Way { name: "speed gained", of: |roles| roles[1][0] / roles[0][0] - 1.0 };
const CHANGE: &[Way] = &[Way { name: "", of: |roles| roles[1][0] / roles[0][0] - 1.0 }];
const SAME: &[Way] = &[Way { name: "", of: |roles| roles[0][0] }];

const ARITHMETIC: &str = "arithmetic";
const LEWIS: &str = "Lewis 2005";

/// Values of fields that most rules share.
const BASE: Rule = Rule {
    name: "",
    origin: ARITHMETIC,
    roles: &[],
    left: "",
    between: " + ",
    stated: 2,
    ways: QUOTIENT,
    ways_of_rate: &[],
    dimension: quotient,
    test: Test::Equal,
    consequence: Consequence::Contradiction,
    means: "",
};

pub(crate) const RULES: &[Rule] = &[
    Rule { name: "rate", roles: &[one("count"), one("time"), one("rate")], left: "{count} / {time}", ..BASE },
    Rule {
        name: "average",
        roles: &[one("total"), one("count"), one("average")],
        left: "{total} / {count}",
        ..BASE
    },
    Rule {
        name: "product",
        roles: &[many("factors"), one("product")],
        left: "{factors}",
        between: " x ",
        stated: 1,
        ways: PRODUCT,
        dimension: |_| None,
        ..BASE
    },
    Rule {
        name: "sum",
        roles: &[many("parts"), one("whole")],
        left: "{parts}",
        stated: 1,
        ways: SUM,
        dimension: alike,
        ..BASE
    },
    Rule {
        name: "parts",
        origin: "time adds up",
        roles: &[many("parts"), one("whole")],
        left: "{parts}",
        stated: 1,
        ways: SUM,
        dimension: alike,
        test: Test::AtMost,
        means: "parts above the whole: they are of a longer period, or overlap",
        ..BASE
    },
    Rule {
        name: "share",
        roles: &[one("part"), one("whole"), one("share")],
        left: "{part} / {whole}",
        ..BASE
    },
    Rule {
        name: "ratio",
        roles: &[one("larger"), one("smaller"), one("times")],
        left: "{larger} / {smaller}",
        dimension: ratio,
        ..BASE
    },
    Rule {
        name: "per-unit",
        roles: &[one("time"), one("size"), one("other-time"), one("other-size"), one("times")],
        left: "({time} / {size}) / ({other-time} / {other-size})",
        stated: 4,
        ways: &[Way { name: "", of: |roles| (roles[0][0] / roles[1][0]) / (roles[2][0] / roles[3][0]) }],
        dimension: |of| (of[0] == of[2] && of[1] == of[3]).then(Dimension::default),
        ..BASE
    },
    Rule {
        name: "faster",
        roles: &[one("from"), one("to"), one("percent")],
        left: "{from} to {to}",
        ways: &[LESS, FASTER],
        ways_of_rate: &[RATE_LESS, RATE_FASTER],
        dimension: ratio,
        means: "neither meaning of \"faster\" gives the figure",
        ..BASE
    },
    Rule {
        name: "reduction",
        roles: &[one("from"), one("to"), one("percent")],
        left: "{from} to {to}",
        ways: &[LESS],
        dimension: ratio,
        ..BASE
    },
    Rule {
        name: "composed",
        roles: &[many("percents"), one("overall")],
        left: "{percents} of what each leaves",
        between: " and ",
        stated: 1,
        ways: &[Way { name: "", of: |roles| 1.0 - roles[0].iter().map(|part| 1.0 - part).product::<f64>() }],
        dimension: alike,
        ..BASE
    },
    Rule {
        name: "always",
        roles: &[one("worse"), one("better"), threshold(0.0)],
        left: "{worse} to {better}: the change",
        ways: CHANGE,
        ways_of_rate: &[Way { name: "of the time", of: |roles| roles[0][0] / roles[1][0] - 1.0 }],
        dimension: ratio,
        test: Test::AtMost,
        means: "one case contradicts \"always\"",
        ..BASE
    },
    Rule {
        name: "scaled",
        roles: &[one("time"), one("size"), one("larger-size"), one("scaled-time")],
        left: "{time} x {larger-size} / {size}",
        stated: 3,
        ways: &[Way { name: "", of: |roles| roles[0][0] * roles[2][0] / roles[1][0] }],
        dimension: |of| (of[1] == of[2]).then_some(of[0]),
        ..BASE
    },
    Rule {
        name: "same",
        roles: &[one("one"), one("other")],
        left: "{one}",
        stated: 1,
        ways: SAME,
        dimension: alike,
        means: "two statements of one quantity",
        ..BASE
    },
    Rule {
        name: "within",
        roles: &[one("larger"), one("smaller"), one("range")],
        left: "{larger} / {smaller}",
        dimension: ratio,
        ..BASE
    },
    Rule {
        name: "equal",
        origin: "equivalence needs a margin",
        roles: &[one("one"), one("other"), threshold(0.0)],
        left: "{one} and {other}: the difference",
        ways: CHANGE,
        dimension: ratio,
        consequence: Consequence::Flaw,
        means: "called equal without a margin",
        ..BASE
    },
    Rule {
        name: "interval",
        origin: "total / rate = period",
        roles: &[one("total"), one("per-second"), one("run")],
        left: "{total} / {per-second}",
        consequence: Consequence::Flaw,
        means: "the rates are of a longer period than the run, and idle time is in each",
        ..BASE
    },
    Rule {
        name: "one-period",
        origin: "total / rate = period",
        roles: &[
            one("total"),
            one("per-second"),
            one("other-total"),
            one("other-per-second"),
            threshold(0.0),
        ],
        left: "{total} at {per-second} and {other-total} at {other-per-second}: the difference of their periods",
        stated: 4,
        ways: &[Way { name: "", of: |roles| roles[2][0] / roles[3][0] / (roles[0][0] / roles[1][0]) - 1.0 }],
        dimension: |of| (of[0].over(of[1]) == of[2].over(of[3])).then(Dimension::default),
        means: "columns of one report are of two periods",
        ..BASE
    },
    Rule {
        name: "untouched",
        origin: "one change at a time",
        roles: &[one("before"), one("after"), threshold(0.0)],
        left: "{before} before and {after} after: the change",
        ways: CHANGE,
        dimension: ratio,
        consequence: Consequence::Flaw,
        means: "a figure that the treatment leaves alone has changed: something else did, too",
        ..BASE
    },
    Rule {
        name: "fixed-cost",
        origin: LEWIS,
        roles: &[one("size"), one("time"), one("larger-size"), one("larger-time"), threshold(0.5)],
        left: "{time} for {size}, {larger-time} for {larger-size}: of the first the part without its rows",
        stated: 4,
        ways: &[Way { name: "", of: fixed_share }],
        dimension: |of| (of[0] == of[2] && of[1] == of[3]).then(Dimension::default),
        test: Test::AtMost,
        consequence: Consequence::Flaw,
        means: "a fixed cost is most of the time, and was not taken out",
        ..BASE
    },
    Rule {
        name: "reach",
        origin: LEWIS,
        roles: &[one("count"), one("time"), one("claimed")],
        left: "{count} / {time}",
        test: Test::AtLeast,
        consequence: Consequence::Flaw,
        means: "the test is far from the rate that it speaks of",
        ..BASE
    },
    Rule {
        name: "moved",
        origin: "a share falls when another part grows",
        roles: &[one("part"), one("share"), one("later-part"), one("later-share"), threshold(0.5)],
        left: "{part} = {share} before and {later-part} = {later-share} after: what the whole saved of it",
        stated: 4,
        ways: &[Way { name: "", of: saved_of_part }],
        dimension: |of| (of[0] == of[2] && of[1] == of[3]).then(Dimension::default),
        test: Test::AtLeast,
        consequence: Consequence::Flaw,
        means: "the time went to other parts, and the whole hardly changed",
        ..BASE
    },
    Rule {
        name: "link",
        origin: "physics",
        roles: &[one("lanes"), bound("link"), one("rate")],
        left: "{lanes} x {link}",
        ways: &[Way { name: "", of: |roles| roles[0][0] * roles[1][0] }],
        dimension: |of| Some(of[0].times(of[1])),
        test: Test::AtLeast,
        means: "more than the link carries",
        ..BASE
    },
    Rule {
        name: "transfer",
        origin: "no request is faster than the path",
        roles: &[one("size"), one("time"), one("limit")],
        left: "{size} / {time}",
        test: Test::AtMost,
        means: "more than the path was ever seen to carry: the time is no time of the transfer",
        ..BASE
    },
    Rule {
        name: "device",
        origin: "physics",
        roles: &[one("rate"), one("size"), one("devices"), bound("device")],
        left: "{rate} / {size} / {devices}",
        stated: 3,
        ways: &[Way { name: "", of: |roles| roles[0][0] / roles[1][0] / roles[2][0] }],
        dimension: |of| Some(of[0].over(of[1]).over(of[2])),
        test: Test::AtMost,
        means: "more than the devices answer: a cache did",
        ..BASE
    },
    Rule {
        name: "little",
        origin: "Little's law",
        roles: &[one("rate"), one("latency"), one("outstanding")],
        left: "{rate} x {latency}",
        ways: &[Way { name: "", of: |roles| roles[0][0] * roles[1][0] }],
        dimension: |of| Some(of[0].times(of[1])),
        test: Test::AtMost,
        means: "more requests in flight than there were",
        ..BASE
    },
];

/// Returns the share of the smaller run's time that does not grow with the size.
fn fixed_share(roles: &[Vec<f64>]) -> f64 {
    let (size, time, larger, longer) = (roles[0][0], roles[1][0], roles[2][0], roles[3][0]);
    (time * larger - longer * size) / (larger - size) / time
}

/// Returns the time saved by the whole, as a share of the time saved by a part.
fn saved_of_part(roles: &[Vec<f64>]) -> f64 {
    let (part, share, later_part, later_share) = (roles[0][0], roles[1][0], roles[2][0], roles[3][0]);
    (part / share - later_part / later_share) / (part - later_part)
}

impl Rule {
    /// Returns the ways for figures of this dimension in the first role. Of a plain number, such as
    /// a count or a score, the file does not say whether more is better: each way is tried.
    pub(crate) fn ways_of(&self, first: Dimension) -> Vec<&'static Way> {
        let (of_time, of_rate) = (self.ways.iter(), self.ways_of_rate.iter());
        match first.seconds {
            ..0 if !self.ways_of_rate.is_empty() => of_rate.collect(),
            0 => of_time.chain(of_rate).collect(),
            _ => of_time.collect(),
        }
    }
}

pub(crate) fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}
