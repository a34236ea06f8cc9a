//! Shell syntax of a command line: quotes, and words that only a shell interprets.
//!
//! One walk over a text yields each letter with the quotes around it. It serves two purposes:
//!
//! - A command started without a shell must not contain shell syntax. As arguments such words do
//!   nothing, and the run would measure another command than intended.
//! - A path inside a text for a shell is quoted for its place: bare, in double or in single quotes.
//!
//! Limits: here-documents are read as plain lines, and `case` patterns as plain words.

use std::iter::Peekable;
use std::str::CharIndices;

/// The quotes around a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Single,
    Double,
    /// Behind a backslash, or in a comment: the letter has no special meaning.
    Escaped,
}

/// State of the walk between two letters.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    /// Open quotes, innermost last; `$(` and a backtick start unquoted text within them.
    open: Vec<Open>,
    backslash: bool,
    comment: bool,
    /// True at the start of a word.
    fresh: bool,
    dollar: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Single,
    Double,
    Substitution,
    Backtick,
    Parenthesis,
}

impl Walk {
    pub(super) fn new() -> Walk {
        Walk { open: Vec::new(), backslash: false, comment: false, fresh: true, dollar: false }
    }

    /// Returns the quotes around the next letter.
    pub(super) fn quotes(&self) -> Quotes {
        match self.open.last() {
            _ if self.comment || self.backslash => Quotes::Escaped,
            Some(Open::Single) => Quotes::Single,
            Some(Open::Double) => Quotes::Double,
            _ => Quotes::None,
        }
    }

    /// Skips a word that changes no quotes.
    pub(super) fn pass(&mut self) {
        (self.fresh, self.dollar, self.backslash) = (false, false, false);
    }

    /// Consumes a letter; returns the quotes around it.
    pub(super) fn take(&mut self, letter: char) -> Quotes {
        let quotes = self.quotes();
        let (fresh, dollar) = (self.fresh, self.dollar);
        self.fresh = quotes == Quotes::None && (letter.is_whitespace() || ";|&()".contains(letter));
        self.dollar = letter == '$' && matches!(quotes, Quotes::None | Quotes::Double);
        match (quotes, letter) {
            (Quotes::Escaped, _) => {
                self.backslash = false;
                self.comment &= letter != '\n';
                self.fresh |= letter == '\n' && !self.comment;
            }
            (Quotes::Single, '\'') => {
                self.open.pop();
            }
            (Quotes::Single, _) => {}
            (_, '\\') => self.backslash = true,
            (Quotes::Double, '"') => {
                self.open.pop();
            }
            (Quotes::None, '\'') => self.open.push(Open::Single),
            (Quotes::None, '"') => self.open.push(Open::Double),
            (Quotes::None, '#') if fresh => self.comment = true,
            (_, '(') if dollar => self.open.push(Open::Substitution),
            (Quotes::None, '(') => self.open.push(Open::Parenthesis),
            (Quotes::None, ')')
                if matches!(self.open.last(), Some(Open::Substitution | Open::Parenthesis)) =>
            {
                self.open.pop();
            }
            (_, '`') if self.open.last() == Some(&Open::Backtick) => {
                self.open.pop();
            }
            (_, '`') => self.open.push(Open::Backtick),
            _ => {}
        }
        quotes
    }
}

/// Quotes a value so that a shell reads it literally within these quotes.
pub(super) fn quoted(value: &str, quotes: Quotes) -> String {
    match quotes {
        Quotes::None => shell_words::quote(value).into_owned(),
        Quotes::Single => value.replace('\'', r"'\''"),
        Quotes::Double => {
            let special = |letter| matches!(letter, '"' | '\\' | '$' | '`');
            value
                .chars()
                .flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter]))
                .collect()
        }
        Quotes::Escaped => value.to_string(),
    }
}

/// Words that at the start of a command belong to the shell.
const BUILTINS: &[&str] = &[
    ".", ":", "!", "{", "alias", "case", "cd", "eval", "exec", "exit", "export", "for", "if", "read", "set",
    "source", "trap", "ulimit", "umask", "unset", "until", "wait", "while",
];

/// Rejects a command with syntax that only a shell interprets. The error names
/// the word and the cures.
pub(super) fn require_none(command: &str) -> Result<(), String> {
    let found = first_word(command).or_else(|| unquoted(command));
    let Some((word, more)) = found else { return Ok(()) };
    Err(format!(
        "{word} is for a shell, and {command:?} is started without one: say --shell (shell = true in a study file), or \
         put it in single quotes if it is text{more}"
    ))
}

/// Returns a first word that is an assignment or a shell builtin.
fn first_word(command: &str) -> Option<(String, String)> {
    let word = command.split_whitespace().next()?;
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if word.split_once('=').is_some_and(|(name, _)| is_name(name)) {
        return Some((word.to_string(), "; `env NAME=VALUE COMMAND` needs no shell".to_string()));
    }
    BUILTINS.contains(&word).then(|| (word.to_string(), String::new()))
}

/// Returns the first unquoted letters that a shell would interpret.
fn unquoted(command: &str) -> Option<(String, String)> {
    // A line end around the whole command separates nothing.
    let text = command.trim();
    let (mut walk, mut letters) = (Walk::new(), text.char_indices().peekable());
    let mut before = ' ';
    while let Some((place, letter)) = letters.next() {
        let quotes = walk.take(letter);
        let starts = before.is_whitespace();
        before = letter;
        if matches!(quotes, Quotes::Single | Quotes::Escaped) {
            continue;
        }
        let of_shell = match letter {
            '`' => true,
            '$' => expands(&mut letters),
            _ if quotes == Quotes::Double => false,
            '|' | '&' | ';' | '<' | '>' | '*' | '?' => true,
            '[' => rest_of_word(text, place).contains(']') && rest_of_word(text, place) != "[]",
            '~' => starts && letters.peek().is_none_or(|(_, next)| *next == '/' || next.is_whitespace()),
            '\n' => {
                return Some((
                    "a second line".to_string(),
                    "; a \\ before its end goes on in the next".to_string(),
                ));
            }
            _ => false,
        };
        if of_shell {
            return Some((word_at(text, place).to_string(), String::new()));
        }
    }
    None
}

/// True if a name, a number or a bracket follows a `$`.
fn expands(letters: &mut Peekable<CharIndices<'_>>) -> bool {
    letters.peek().is_some_and(|(_, next)| next.is_ascii_alphanumeric() || "_({@*#?$!-".contains(*next))
}

fn rest_of_word(text: &str, place: usize) -> &str {
    let rest = &text[place..];
    &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())]
}

/// Returns the word around a place, delimited by white space.
fn word_at(text: &str, place: usize) -> &str {
    let begin = text[..place].rfind(char::is_whitespace).map_or(0, |space| space + 1);
    rest_of_word(text, begin)
}

/// True if the last of these arguments makes the next one a text for a shell: `sh -c`.
pub(super) fn reads_next(arguments: &[String]) -> bool {
    let [.., program, option] = arguments else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh")
        && option.starts_with('-')
        && !option.starts_with("--")
        && option.ends_with('c')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> Option<String> {
        let refused = require_none(command).err()?;
        Some(refused.split(" is for a shell").next().unwrap_or_default().to_string())
    }

    #[test]
    fn shell_syntax_is_found_unless_it_is_quoted() {
        for (command, word) in [
            ("true && sleep 1", "&&"),
            ("cat f | wc -l", "|"),
            ("a || b", "||"),
            ("echo a > out", ">"),
            ("sort f 2>&1", "2>&1"),
            ("sort <f", "<f"),
            ("sleep 1; true", "1;"),
            ("sleep 1 &", "&"),
            ("rm -f build/*.o", "build/*.o"),
            ("ls file?.txt", "file?.txt"),
            ("ls [ab].txt", "[ab].txt"),
            ("ls ~", "~"),
            ("ls ~/x", "~/x"),
            ("rm -rf $DIR/x", "$DIR/x"),
            ("rm -rf \"${DIR}/x\"", "\"${DIR}/x\""),
            ("echo $(date)", "$(date)"),
            ("echo \"`date`\"", "\"`date`\""),
            ("LC_ALL=C sort f", "LC_ALL=C"),
            ("cd d", "cd"),
            ("rm a\nsync", "a second line"),
        ] {
            // The line break is reported as one.
            assert_eq!(found(command).as_deref(), Some(word), "{command}");
        }
        for command in [
            "echo '&&' '|' \"; > *\" \\> '$(date)'",
            "awk '{print $1 > 2}' f",
            "find . -name '*.o'",
            "sh -c 'cat f | wc -l > out'",
            "env LC_ALL=C sort f",
            "\n  sort --key=1 \\\n  f\n",
            "[ -e f ]",
            "cp a~ b.~1~ costs$ 50%",
            "dd if=/dev/zero of=x # a > b",
        ] {
            assert_eq!(found(command), None, "{command}");
        }
    }

    #[test]
    fn a_value_is_quoted_as_its_place_needs_it() {
        let place = |text: &str| {
            let mut walk = Walk::new();
            for letter in text.chars() {
                walk.take(letter);
            }
            walk.quotes()
        };
        for (before, quotes) in [
            ("ls ", Quotes::None),
            ("ls 'a' ", Quotes::None),
            ("ls \"", Quotes::Double),
            ("ls '", Quotes::Single),
            ("ls \"$(cat ", Quotes::None),
            ("ls \"$(cat) ", Quotes::Double),
            ("ls \"`cat ", Quotes::None),
            ("ls \"'", Quotes::Double),
            ("ls # don't\nls ", Quotes::None),
            ("(cd \"", Quotes::Double),
        ] {
            assert_eq!(place(before), quotes, "{before}");
        }
        assert_eq!(quoted("/a b", Quotes::None), "'/a b'");
        assert_eq!(quoted("/a'b", Quotes::Single), r"/a'\''b");
        assert_eq!(quoted("/a\"$b", Quotes::Double), "/a\\\"\\$b");
    }
}
