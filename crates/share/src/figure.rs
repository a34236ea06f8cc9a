//! Texts that are figures or times of day.

/// Units that may stand right behind a number or after a blank, in lower case.
const UNITS: &str = " b k m g t p kb mb gb tb pb kib mib gib tib s ms us ns sec secs second \
    seconds msec usec usecs nsec min mins minute minutes h hr hrs hour hours d day days % x b/s \
    kb/s mb/s gb/s kib/s mib/s gib/s mib/sec mb/sec kb/sec bytes blocks ops rows tps iops /s /sec \
    cpu cpus th ";

/// True if the text is a number, with a unit or without one, or a range or list of numbers.
#[must_use]
pub fn is_figure(text: &str) -> bool {
    let mut has_number = false;
    let mut chunks = text.split_whitespace();
    let is_all = chunks.all(|chunk| {
        let bare = chunk.trim_matches(['(', ')', '[', ']', ',', '|', ';']);
        let is_number = is_range(bare);
        has_number |= is_number;
        is_number || is_unit(bare)
    });
    is_all && has_number
}

fn is_unit(text: &str) -> bool {
    text.is_empty() || UNITS.contains(&format!(" {} ", text.to_lowercase()))
}

/// True for `1`, `1..2`, `1-2`, `1/2` and `1:02:03.4`.
fn is_range(text: &str) -> bool {
    let text = text.trim_start_matches(['<', '>', '=', '~', '+', '-', '≤', '≥', '±']);
    if text.is_empty() || !text.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return false;
    }
    if is_number(text) || is_clock(text) {
        return true;
    }
    let split = |mark: &str| text.split_once(mark).filter(|(low, high)| is_number(low) && is_number(high));
    ["..", "-", "/", ","].iter().any(|mark| split(mark).is_some())
        || text.contains(',') && text.split(',').all(is_number)
}

/// True for digits with at most one point, or groups of three, an exponent and a unit.
fn is_number(text: &str) -> bool {
    let end = text
        .find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | ',')))
        .unwrap_or(text.len());
    let (body, mut unit) = text.split_at(end);
    if let Some(power) = unit.strip_prefix(['e', 'E']) {
        let power = power.trim_start_matches(['+', '-']);
        let digits = power.bytes().take_while(u8::is_ascii_digit).count();
        unit = if digits > 0 { &power[digits..] } else { unit };
    }
    let points = body.matches('.').count();
    let are_groups = |mark: char| {
        body.split(mark).skip(1).all(|group| group.bytes().take_while(u8::is_ascii_digit).count() >= 3)
    };
    let is_body = body.contains(|letter: char| letter.is_ascii_digit())
        && (points <= 1 || points == 2 && are_groups('.'))
        && (body.matches(',').count() <= 1 || are_groups(','));
    is_body && is_unit(unit)
}

fn is_clock(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_whole =
        |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_last = |part: &str| is_whole(part.split('.').next().unwrap_or_default()) && is_number(part);
    (2..=3).contains(&parts.len())
        && parts[..parts.len() - 1].iter().all(|part| is_whole(part))
        && is_last(parts[parts.len() - 1])
}

/// True if the text is a date, a time of day, or both.
#[must_use]
pub fn is_stamp(text: &str) -> bool {
    const LETTERS_MOST: usize = 40;
    const NAMED: &str = " jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun am pm t z utc gmt \
        cet cest average mai okt dez ";
    let is_word = |word: &str| {
        let word = word.to_lowercase();
        word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() <= 9
            || NAMED.contains(&format!(" {word} "))
    };
    let parts = || text.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    // `2024-09-04T12:07:20` has a letter between digits.
    let is_part =
        |part: &str| is_word(part) || part.split(['T', 'Z']).all(|part| part.is_empty() || is_word(part));
    let is_marked = |chunk: &str| {
        let points = chunk.matches('.').count();
        let clock = chunk.split_once('T').map_or(chunk, |(_, clock)| clock);
        let is_date = chunk.contains(['-', '/']) && chunk.split(['-', '/']).count() == 3 && points == 0;
        is_clock(clock.split(['+', 'Z']).next().unwrap_or_default()) && chunk.contains(':') || is_date
    };
    let has_name = || parts().any(|part| part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let has_marks =
        text.split_whitespace().any(|chunk| is_marked(chunk.trim_matches([',', '(', ')']))) || has_name();
    let is_all =
        text.split_whitespace().all(|chunk| is_marked(chunk) || !chunk.trim_end_matches(':').contains(':'))
            && text.matches('.').count() < 4;
    text.len() <= LETTERS_MOST && has_marks && is_all && parts().next().is_some() && parts().all(is_part)
}
