//! Classes of Oracle's wait events: the list `events.txt`, by name and by start of name.
//!
//! A report names the class of an event in some of its sections. Only for the others the list
//! decides, and an event that it lacks is of an unknown class. A guess would make a diagnosis the
//! opposite of the truth: a report with 32% of I/O was once said to wait for `Other`.
//!
//! Narrow columns cut names off, so a name without a match may be the start of one.

use std::sync::LazyLock;

/// The class of an event that neither the report nor the list names.
pub const UNKNOWN: &str = "unknown";

/// Names with their classes, in the order of the names; a star ends the start of one.
static EVENTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut class = UNKNOWN;
    let mut events = Vec::new();
    for line in include_str!("events.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(named) => class = named,
            None => events.push((line, class)),
        }
    }
    events.sort_unstable();
    events
});

/// Returns the full name of a class that its column may have cut off.
#[must_use]
pub fn full_class(printed: &str) -> Option<&'static str> {
    const CLASSES: [&str; 12] = [
        "Administrative",
        "Application",
        "Cluster",
        "Commit",
        "Concurrency",
        "Configuration",
        "Idle",
        "Network",
        "Other",
        "Scheduler",
        "System I/O",
        "User I/O",
    ];
    CLASSES.into_iter().find(|class| !printed.is_empty() && class.starts_with(printed))
}

/// Returns the class of an event by the list.
#[must_use]
pub fn class_of(event: &str) -> Option<&'static str> {
    const CUT_LEAST: usize = 20;
    let exact = EVENTS.iter().find(|(name, _)| *name == event);
    let starts = |name: &str| name.strip_suffix('*').filter(|start| event.starts_with(start)).map(str::len);
    let cut = || {
        let mut whole = EVENTS.iter().filter(|(name, _)| name.starts_with(event));
        let first = whole.next().filter(|_| event.len() >= CUT_LEAST)?;
        whole.all(|(_, class)| *class == first.1).then_some(first)
    };
    let longest = || {
        let found = EVENTS.iter().filter_map(|(name, class)| Some((starts(name)?, (name, class))));
        found.max_by_key(|(length, _)| *length)
    };
    if let Some((_, class)) = exact {
        return Some(class);
    }
    cut().map(|(_, class)| *class).or_else(|| longest().map(|(_, (_, class))| *class))
}

/// Returns the full name of an event that its column cut off, if only one begins so.
#[must_use]
pub fn full_name(printed: &str) -> &str {
    const CUT_LEAST: usize = 26;
    let mut whole = EVENTS.iter().filter(|(name, _)| !name.ends_with('*') && name.starts_with(printed));
    match (whole.next(), whole.next()) {
        (Some((name, _)), None) if printed.len() >= CUT_LEAST => name,
        _ => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_class_of_its_name_or_of_the_longest_start() {
        for (event, class) in [
            ("cell single block physical read", Some("User I/O")),
            ("cell single block physical read: flash cache", Some("User I/O")),
            ("PX Deq Credit: send blkd", Some("Other")),
            ("PX Deq: Execute Reply", Some("Idle")),
            ("library cache load lock", Some("Concurrency")),
            ("cursor: pin S wait on X", Some("Concurrency")),
            ("gc current block 2-way", Some("Cluster")),
            ("SQL*Net message to client", Some("Network")),
            ("SQL*Net message from client", Some("Idle")),
            ("SQL*Net break/reset to cli", Some("Application")),
            ("latch free", Some("Other")),
            ("latch: cache buffers chains", Some("Concurrency")),
            ("enq: TX - row lock contention", Some("Application")),
            ("log file sync", Some("Commit")),
            ("a name of nobody", None),
        ] {
            assert_eq!(class_of(event), class, "{event}");
        }
    }

    #[test]
    fn no_name_is_listed_twice() {
        for pair in EVENTS.windows(2) {
            assert_ne!(pair[0].0, pair[1].0);
        }
    }
}
