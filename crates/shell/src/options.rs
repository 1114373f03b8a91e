//! Option grammars: clustered, attached, `=`, abbreviated, `--`, repeated.

use crate::command::{Value, Word};

/// Which options of a program take a value.
#[derive(Debug, Clone, Copy)]
pub struct Grammar {
    /// Letters of short options with a value.
    pub short: &'static str,
    /// Long options with a value, without `--`.
    pub long: &'static [&'static str],
    /// Long options without a value that an abbreviation could mean.
    pub flags: &'static [&'static str],
    /// Whether long options can be abbreviated.
    pub abbreviates: bool,
    /// Whether options end at the first operand.
    pub stops_at_operand: bool,
}

/// Nothing takes a value.
impl Grammar {
    /// A grammar in which nothing takes a value.
    pub const PLAIN: Self =
        Self { short: "", long: &[], flags: &[], abbreviates: false, stops_at_operand: false };
}

/// One option that was given.
#[derive(Debug, Clone)]
pub struct GivenOption<'w> {
    /// `-o` or `--output`: short ones with one dash, long ones with two, unabbreviated.
    pub name: String,
    /// Its value, where it takes one.
    pub value: Option<Value>,
    /// The word that holds the value.
    pub word: Option<&'w Word>,
    /// How many bytes of that word precede the value: `-o` in `-ofile`.
    pub lead: usize,
    /// The word that holds the option itself.
    pub at: &'w Word,
}

/// A command's arguments by role.
#[derive(Debug, Clone)]
pub struct Parsed<'w> {
    /// Options in order.
    pub options: Vec<GivenOption<'w>>,
    /// Everything else in order.
    pub operands: Vec<&'w Word>,
    /// The index of the word `--`, if there is one.
    pub dashes: Option<&'w Word>,
}

impl<'w> Parsed<'w> {
    /// Every option of one of these names.
    pub fn all<'p>(
        &'p self,
        names: &'p [&'p str],
    ) -> impl DoubleEndedIterator<Item = &'p GivenOption<'w>> {
        self.options.iter().filter(move |option| names.contains(&option.name.as_str()))
    }

    /// The last option of one of these names.
    pub fn last(&self, names: &[&str]) -> Option<&GivenOption<'w>> {
        self.options.iter().rfind(|option| names.contains(&option.name.as_str()))
    }

    /// Whether one of these options was given.
    pub fn has(&self, names: &[&str]) -> bool {
        self.last(names).is_some()
    }
}

/// Sorts arguments into options and operands.
pub fn parse_options<'w>(words: &'w [Word], grammar: &Grammar) -> Parsed<'w> {
    let mut parsed = Parsed { options: Vec::new(), operands: Vec::new(), dashes: None };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.value.known() else {
            parsed.operands.push(word);
            continue;
        };
        if text == "--" {
            parsed.dashes = Some(word);
            parsed.operands.extend(rest);
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let (name, takes) = grammar.resolve(name);
            let lead = 3 + long.find('=').unwrap_or(0);
            let option = match (attached, takes) {
                (Some(value), _) => GivenOption {
                    name,
                    value: Some(Value::text(value)),
                    word: Some(word),
                    lead,
                    at: word,
                },
                (None, true) => separate(name, rest.next(), word),
                (None, false) => GivenOption { name, value: None, word: None, lead: 0, at: word },
            };
            parsed.options.push(option);
        } else if text.len() > 1 && text.starts_with('-') {
            cluster(text, word, grammar, &mut rest, &mut parsed);
        } else {
            parsed.operands.push(word);
            if grammar.stops_at_operand {
                parsed.operands.extend(rest);
                break;
            }
        }
    }
    parsed
}

/// `-sSLo file`, `-ofile`: every letter is an option until one takes a value.
fn cluster<'w>(
    text: &str,
    word: &'w Word,
    grammar: &Grammar,
    rest: &mut std::slice::Iter<'w, Word>,
    parsed: &mut Parsed<'w>,
) {
    for (at, letter) in text.char_indices().skip(1) {
        let name = format!("-{letter}");
        if !grammar.short.contains(letter) {
            parsed.options.push(GivenOption { name, value: None, word: None, lead: 0, at: word });
            continue;
        }
        let after = at + letter.len_utf8();
        match text.get(after..).filter(|value| !value.is_empty()) {
            Some(value) => parsed.options.push(GivenOption {
                name,
                value: Some(Value::text(value)),
                word: Some(word),
                lead: after,
                at: word,
            }),
            None => parsed.options.push(separate(name, rest.next(), word)),
        }
        break;
    }
}

fn separate<'w>(name: String, value: Option<&'w Word>, at: &'w Word) -> GivenOption<'w> {
    GivenOption { name, value: value.map(|word| word.value.clone()), word: value, lead: 0, at }
}

impl Grammar {
    /// The whole name of a long option, and whether it takes a value.
    fn resolve(&self, name: &str) -> (String, bool) {
        let whole = |name: &str| format!("--{name}");
        if self.long.contains(&name) {
            return (whole(name), true);
        }
        if self.abbreviates && !self.flags.contains(&name) && !name.is_empty() {
            let mut matching = self.long.iter().filter(|long| long.starts_with(name));
            let flags = self.flags.iter().filter(|flag| flag.starts_with(name)).count();
            if let (Some(only), None, 0) = (matching.next(), matching.next(), flags) {
                return (whole(only), true);
            }
        }
        (whole(name), false)
    }
}
