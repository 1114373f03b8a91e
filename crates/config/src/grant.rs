//! Adds one entry to a hand-written file, or removes one, and leaves every other byte as it is.

use std::fmt;
use std::path::{Path, PathBuf};

use model::{AbsPath, DomainRule, FileText};
use toml_edit::{Array, DocumentMut, Item, Table, Value, value};

/// What is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// An entry of `filesystem.allow_read`.
    Read(String),
    /// An entry of `filesystem.allow_write`.
    Write(String),
    /// An entry of `network.allow_unix`.
    Unix(String),
    /// An entry of `network.allowed_domains`.
    Domain(DomainRule),
    /// An entry of `network.allow_local_ports`.
    Port(u16),
    /// An entry of `environment.pass`.
    Variable(String),
}

impl Grant {
    fn place(&self) -> (&'static str, &'static str) {
        match self {
            Self::Read(_) => ("filesystem", "allow_read"),
            Self::Write(_) => ("filesystem", "allow_write"),
            Self::Unix(_) => ("network", "allow_unix"),
            Self::Domain(_) => ("network", "allowed_domains"),
            Self::Port(_) => ("network", "allow_local_ports"),
            Self::Variable(_) => ("environment", "pass"),
        }
    }

    fn entry(&self) -> Value {
        match self {
            Self::Read(text) | Self::Write(text) | Self::Unix(text) | Self::Variable(text) => {
                text.clone().into()
            }
            Self::Domain(rule) => rule.to_string().into(),
            Self::Port(port) => i64::from(*port).into(),
        }
    }

    /// Whether an entry of a file says the same. Paths are compared where they lead: a file may name
    /// them relative to itself.
    fn is(&self, entry: &Value, file: &Path, home: &AbsPath) -> bool {
        let at = |text: &str| {
            let path = model::absolute(text, file.parent()?, home).ok()?;
            AbsPath::lexical(&path).ok()
        };
        match (self, entry.as_str()) {
            (Self::Port(port), _) => entry.as_integer() == Some(i64::from(*port)),
            (Self::Read(path) | Self::Write(path) | Self::Unix(path), Some(text)) => {
                path == text || (at(path).is_some() && at(path) == at(text))
            }
            (Self::Domain(rule), Some(text)) => {
                DomainRule::parse(text).is_ok_and(|known| known == *rule)
            }
            (Self::Variable(name), Some(text)) => name == text,
            (_, None) => false,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, key) = self.place();
        write!(f, "{table}.{key} = {}", self.entry().to_string().trim())
    }
}

/// The result of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// The new text of the file.
    Added(String),
    /// The file has the entry already.
    AlreadyThere,
}

/// Why a grant could not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {why}", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The key is not a list.
    #[error("`{key}` in {} is not a list", .path.display())]
    NotAList {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
}

/// Adds an entry to the text of the file at `path`. Writes nothing.
pub fn grant(path: &Path, grant: &Grant) -> Result<Granted, GrantError> {
    let text = match facts::read_small(path) {
        FileText::Text(text) => text,
        FileText::Missing => "version = 1\n".to_owned(),
        FileText::Unreadable(why) => {
            return Err(GrantError::Unreadable { path: path.to_path_buf(), why });
        }
    };
    add(path, &text, grant)
}

/// The result of taking a grant back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// The new text of the file.
    Removed(String),
    /// The file has no such entry.
    NotThere,
}

/// Removes an entry from the text of the file at `path`. Writes nothing.
pub fn revoke(path: &Path, grant: &Grant, home: &AbsPath) -> Result<Revoked, GrantError> {
    match facts::read_small(path) {
        FileText::Text(text) => remove(path, &text, grant, home),
        FileText::Missing => Ok(Revoked::NotThere),
        FileText::Unreadable(why) => Err(GrantError::Unreadable { path: path.to_path_buf(), why }),
    }
}

fn remove(path: &Path, text: &str, grant: &Grant, home: &AbsPath) -> Result<Revoked, GrantError> {
    let mut document = parse(path, text)?;
    let (table, key) = grant.place();
    let list = document.get_mut(table).and_then(Item::as_table_like_mut);
    let list = list.and_then(|table| table.get_mut(key)).and_then(Item::as_array_mut);
    let Some(list) = list else { return Ok(Revoked::NotThere) };
    let Some(at) = list.iter().position(|entry| grant.is(entry, path, home)) else {
        return Ok(Revoked::NotThere);
    };
    take_out(list, at);
    Ok(Revoked::Removed(document.to_string()))
}

/// Removes an entry with the comment behind it. The comments before it stay, and so does the layout.
fn take_out(list: &mut Array, at: usize) {
    let last = at + 1 == list.len();
    let comma = list.trailing_comma();
    let text = |part: Option<&toml_edit::RawString>| {
        part.and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
    };
    let removed = list.remove(at);
    let before = text(removed.decor().prefix());
    // The line break and the indent belong to the entry itself.
    let kept = before.rfind('\n').and_then(|end| before.get(..end)).map(str::to_owned);
    let after = |old: String| {
        let Some(kept) = &kept else { return old };
        let rest = old.find('\n').and_then(|end| old.get(end..)).unwrap_or_default();
        format!("{kept}{rest}")
    };
    if !last {
        if let Some(next) = list.get_mut(at) {
            let own = text(next.decor().prefix());
            let prefix = if kept.is_some() {
                after(own)
            } else if at == 0 {
                before
            } else {
                own
            };
            next.decor_mut().set_prefix(prefix);
        }
    } else if comma || list.is_empty() {
        let trailing = text(Some(list.trailing()));
        list.set_trailing(after(trailing));
        list.set_trailing_comma(comma && !list.is_empty());
    } else if let Some(end) = list.get_mut(at - 1) {
        let suffix = after(text(removed.decor().suffix()));
        end.decor_mut().set_suffix(suffix);
    }
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, GrantError> {
    text.parse().map_err(|error: toml_edit::TomlError| GrantError::Broken {
        path: path.to_path_buf(),
        why: error.message().to_owned(),
    })
}

fn add(path: &Path, text: &str, grant: &Grant) -> Result<Granted, GrantError> {
    let mut document = parse(path, text)?;
    let (table, key) = grant.place();
    let not_a_list =
        || GrantError::NotAList { path: path.to_path_buf(), key: format!("{table}.{key}") };
    let table = document.entry(table).or_insert_with(|| Item::Table(Table::new()));
    let table = table.as_table_like_mut().ok_or_else(not_a_list)?;
    let list = table.entry(key).or_insert_with(|| value(Array::new()));
    let list = list.as_array_mut().ok_or_else(not_a_list)?;
    let entry = grant.entry();
    let known = |known: &Value| match (known.as_str(), known.as_integer()) {
        (None, None) => false,
        both => both == (entry.as_str(), entry.as_integer()),
    };
    if list.iter().any(known) {
        return Ok(Granted::AlreadyThere);
    }
    push(list, entry);
    Ok(Granted::Added(document.to_string()))
}

/// Appends an entry in the layout of the list: on its own line if the others are, and after the
/// comments that belong to them.
fn push(list: &mut Array, entry: Value) {
    let Some(indent) = list.iter().last().and_then(own_line) else {
        return list.push(entry);
    };
    let last = list.len() - 1;
    let comment = if list.trailing_comma() {
        list.trailing().as_str().unwrap_or_default().to_owned()
    } else {
        // Without a trailing comma, the comment is part of the last entry.
        list.get_mut(last).map(take_suffix).unwrap_or_default()
    };
    let mut new = entry;
    new.decor_mut().set_prefix(format!("{}{indent}", comment.trim_end()));
    list.push_formatted(new);
    list.set_trailing_comma(true);
    list.set_trailing("\n");
}

/// The line break and indent before an entry that has its own line.
fn own_line(entry: &Value) -> Option<String> {
    let prefix = entry.decor().prefix()?.as_str()?;
    prefix.rfind('\n').and_then(|at| prefix.get(at..)).map(str::to_owned)
}

fn take_suffix(entry: &mut Value) -> String {
    let suffix = entry.decor().suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default();
    let suffix = suffix.to_owned();
    entry.decor_mut().set_suffix("");
    suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, what: &Grant) -> String {
        match add(Path::new("/p/ringwall.toml"), text, what).unwrap() {
            Granted::Added(text) => text,
            Granted::AlreadyThere => panic!("already there"),
        }
    }

    #[test]
    fn comments_and_order_stay_as_they_were() {
        let text = "# mine\nlevel = \"readonly\" # careful\n\n[network]\n\n[filesystem] # files\n\
                    # libraries\nallow_read = [\n  \"../a\", # one\n  \"../b\", # two\n]\n\
                    deny_read = []\n# end\n";
        let expected = text.replace("  \"../b\", # two\n]", "  \"../b\", # two\n  \"/x\",\n]");
        assert_eq!(added(text, &Grant::Read("/x".into())), expected);
    }

    #[test]
    fn a_comment_stays_with_the_entry_it_follows() {
        let text = "[filesystem]\nallow_read = [\n    \"a\" # last\n]\n";
        let expected = "[filesystem]\nallow_read = [\n    \"a\", # last\n    \"b\",\n]\n";
        assert_eq!(added(text, &Grant::Read("b".into())), expected);
    }

    #[test]
    fn missing_tables_and_lists_are_made() {
        let domain = Grant::Domain(DomainRule::parse("example.org").unwrap());
        let text = added("version = 1\n", &domain);
        assert_eq!(text, "version = 1\n\n[network]\nallowed_domains = [\"example.org\"]\n");
        let text = added("[filesystem]\nallow_read = [\"a\"]\n", &Grant::Read("b".into()));
        assert_eq!(text, "[filesystem]\nallow_read = [\"a\", \"b\"]\n");
    }

    #[test]
    fn an_entry_is_added_once() {
        let text = "[filesystem]\nallow_write = [\"/x\"]\n";
        let path = Path::new("/p/ringwall.toml");
        assert_eq!(add(path, text, &Grant::Write("/x".into())), Ok(Granted::AlreadyThere));
    }

    fn removed(text: &str, what: &Grant) -> String {
        let home = AbsPath::lexical(Path::new("/home/u")).unwrap();
        match remove(Path::new("/p/ringwall.toml"), text, what, &home).unwrap() {
            Revoked::Removed(text) => text,
            Revoked::NotThere => "not there".into(),
        }
    }

    #[test]
    fn what_is_taken_back_leaves_everything_else_as_it_was() {
        let read = |path: &str| Grant::Read(path.into());
        let lists = "[filesystem]\nallow_read = [\n  # libraries\n  \"../a\", # one\n  \"../b\", \
                     # two\n  \"../c\", # three\n]\n# end\n";
        for (path, gone) in [
            ("../b", "  \"../b\", # two\n"),
            ("/b", "  \"../b\", # two\n"),
            ("../a", "  \"../a\", # one\n"),
            ("../c", "  \"../c\", # three\n"),
        ] {
            assert_eq!(removed(lists, &read(path)), lists.replace(gone, ""), "{path}");
        }
        for (text, path, expected) in [
            ("x = [\"a\", \"b\", \"c\"]", "b", "x = [\"a\", \"c\"]"),
            ("x = [\"a\", \"b\"]", "a", "x = [\"b\"]"),
            ("x = [\"a\", \"b\"]", "b", "x = [\"a\"]"),
            ("x = [\"a\"] # mine", "a", "x = [] # mine"),
            ("x = [\n  \"a\", # one\n  \"b\" # two\n]", "b", "x = [\n  \"a\" # one\n]"),
        ] {
            let whole = |text: &str| format!("[filesystem]\n{}\n", text.replace('x', "allow_read"));
            assert_eq!(removed(&whole(text), &read(path)), whole(expected), "{text}");
        }
        let ports = "[network]\nallow_local_ports = [5432, 80]\n";
        assert_eq!(removed(ports, &Grant::Port(5432)), ports.replace("5432, ", ""));
        assert_eq!(removed(ports, &Grant::Port(81)), "not there");
        assert_eq!(removed(ports, &read("a")), "not there");
        // What is added and taken back leaves the file as it was.
        for grant in [Grant::Port(1), Grant::Variable("A".into()), read("/x")] {
            let there = added(lists, &grant);
            let back = removed(&there, &grant);
            assert!(back.starts_with(lists.trim_end_matches("# end\n")), "{back}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_edited_is_left_alone() {
        let path = Path::new("/p/ringwall.toml");
        for text in ["[filesystem", "filesystem = 3\n", "[filesystem]\nallow_read = \"a\"\n"] {
            assert!(add(path, text, &Grant::Read("/x".into())).is_err(), "{text}");
        }
    }
}
