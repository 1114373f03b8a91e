//! Adds one entry to a hand-written file and leaves every other byte as it is.

use std::fmt;
use std::path::{Path, PathBuf};

use model::{DomainRule, FileText};
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
}

impl Grant {
    fn place(&self) -> (&'static str, &'static str) {
        match self {
            Self::Read(_) => ("filesystem", "allow_read"),
            Self::Write(_) => ("filesystem", "allow_write"),
            Self::Unix(_) => ("network", "allow_unix"),
            Self::Domain(_) => ("network", "allowed_domains"),
        }
    }

    fn entry(&self) -> String {
        match self {
            Self::Read(path) | Self::Write(path) | Self::Unix(path) => path.clone(),
            Self::Domain(rule) => rule.to_string(),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, key) = self.place();
        write!(f, "{table}.{key} = {:?}", self.entry())
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

fn add(path: &Path, text: &str, grant: &Grant) -> Result<Granted, GrantError> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        GrantError::Broken { path: path.to_path_buf(), why: error.message().to_owned() }
    })?;
    let (table, key) = grant.place();
    let not_a_list =
        || GrantError::NotAList { path: path.to_path_buf(), key: format!("{table}.{key}") };
    let table = document.entry(table).or_insert_with(|| Item::Table(Table::new()));
    let table = table.as_table_like_mut().ok_or_else(not_a_list)?;
    let list = table.entry(key).or_insert_with(|| value(Array::new()));
    let list = list.as_array_mut().ok_or_else(not_a_list)?;
    let entry = grant.entry();
    if list.iter().any(|known| known.as_str() == Some(&entry)) {
        return Ok(Granted::AlreadyThere);
    }
    push(list, entry);
    Ok(Granted::Added(document.to_string()))
}

/// Appends an entry in the layout of the list: on its own line if the others are, and after the
/// comments that belong to them.
fn push(list: &mut Array, entry: String) {
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
    let mut new = Value::from(entry);
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

    #[test]
    fn a_file_that_cannot_be_edited_is_left_alone() {
        let path = Path::new("/p/ringwall.toml");
        for text in ["[filesystem", "filesystem = 3\n", "[filesystem]\nallow_read = \"a\"\n"] {
            assert!(add(path, text, &Grant::Read("/x".into())).is_err(), "{text}");
        }
    }
}
