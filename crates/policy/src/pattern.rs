//! [`PathRule`]: how configuration names paths. The only glob semantics in Ringwall.
//!
//! - `~` is the user's home; a relative path starts at the directory of the file that holds it.
//! - A rule covers the path it names and everything below it.
//! - `*` and `?` stay within one component, `**` crosses them, `[…]` and `{…}` work as in a shell;
//!   a backslash takes a character literally.
//! - A rule that begins with `**/` applies at any depth anywhere.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{AbsPath, PathError};
use serde::{Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

/// A path or pattern from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    text: String,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// A literal path.
    Literal(AbsPath),
    /// A pattern below a literal directory. `glob` is relative to it.
    Below { prefix: AbsPath, glob: String },
    /// A pattern that applies anywhere. `glob` begins with `**/`.
    Anywhere { glob: String },
    /// A literal path relative to the workspace, whichever that is.
    InWorkspace(PathBuf),
}

/// Why a text is not a path rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathRuleError {
    /// The text is not a path.
    #[error("`{text}`: {error}")]
    Path {
        /// The rule as written.
        text: String,
        /// What is wrong with it.
        error: PathError,
    },
    /// `..` after a wildcard has no fixed meaning.
    #[error("`{0}`: `..` cannot follow a wildcard")]
    Climbs(String),
}

impl PathRule {
    /// Reads a rule from a file in the directory `base`.
    pub fn parse(text: &str, base: &Path, home: &AbsPath) -> Result<Self, PathRuleError> {
        let wrong = |error| PathRuleError::Path { text: text.into(), error };
        let (literal, glob) = split_at_wildcard(text);
        if glob.split('/').any(|component| component == "..") {
            return Err(PathRuleError::Climbs(text.into()));
        }
        let glob = plain(glob);
        let shape = if text.starts_with("**/") {
            Shape::Anywhere { glob }
        } else if glob.is_empty() {
            Shape::Literal(clean(literal, base, home).map_err(wrong)?)
        } else {
            let literal = if literal.is_empty() { "." } else { literal };
            Shape::Below { prefix: clean(literal, base, home).map_err(wrong)?, glob }
        };
        Ok(Self { text: text.into(), shape })
    }

    /// A literal path relative to whatever the workspace is.
    pub fn in_workspace(name: &str) -> Self {
        Self { text: name.into(), shape: Shape::InWorkspace(name.into()) }
    }

    /// A rule for exactly this path, whatever characters it has.
    pub fn literal(path: &AbsPath) -> Self {
        Self { text: path.to_string(), shape: Shape::Literal(path.clone()) }
    }

    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text that makes `parse` take this path literally.
    pub fn quote(path: &str) -> String {
        let mut quoted = String::with_capacity(path.len());
        for character in path.chars() {
            if is_wildcard(character) {
                quoted.push('\\');
            }
            quoted.push(character);
        }
        quoted
    }

    /// The part without wildcards, where it depends on the file system what that reaches.
    pub fn prefix(&self, workspace: &AbsPath) -> Option<AbsPath> {
        match &self.shape {
            Shape::Literal(path) | Shape::Below { prefix: path, .. } => Some(path.clone()),
            Shape::InWorkspace(name) => AbsPath::lexical(&workspace.as_path().join(name)).ok(),
            Shape::Anywhere { .. } => None,
        }
    }

    /// Whether the rule has a wildcard in it.
    pub fn is_pattern(&self) -> bool {
        matches!(self.shape, Shape::Below { .. } | Shape::Anywhere { .. })
    }

    /// Whether the rule as it is written covers `path`, letter by letter.
    pub fn matches(&self, path: &AbsPath, workspace: &AbsPath) -> bool {
        self.covers(path, self.prefix(workspace).as_ref(), Case::Exact)
    }

    /// Whether the rule covers `path`, where `prefix` is what [`Self::prefix`] really leads to.
    ///
    /// [`Case::Fold`] is for deny rules: on a file system that folds case, `.ENV` is `.env`.
    pub fn covers(&self, path: &AbsPath, prefix: Option<&AbsPath>, case: Case) -> bool {
        match (&self.shape, prefix) {
            (Shape::Anywhere { glob }, _) => glob_covers(glob, Path::new("/"), path, case),
            (Shape::Literal(_) | Shape::InWorkspace(_), Some(prefix)) => {
                case.below(prefix.as_path(), path.as_path()).is_some()
            }
            (Shape::Below { glob, .. }, Some(prefix)) => {
                glob_covers(glob, prefix.as_path(), path, case)
            }
            (_, None) => false,
        }
    }
}

/// How names compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Byte for byte. Right for allow rules: a doubt must not allow.
    Exact,
    /// Without regard to case and invisible characters. Right for deny rules.
    Fold,
}

impl Case {
    /// The rest of `path` below `prefix`, if it is below it.
    fn below(self, prefix: &Path, path: &Path) -> Option<PathBuf> {
        let mut rest = path.components();
        for expected in prefix.components() {
            let component = rest.next()?;
            let same = match self {
                Self::Exact => component == expected,
                Self::Fold => {
                    fold(&component.as_os_str().to_string_lossy())
                        == fold(&expected.as_os_str().to_string_lossy())
                }
            };
            if !same {
                return None;
            }
        }
        Some(rest.as_path().to_path_buf())
    }
}

/// The spelling under which file systems that fold case, compose characters or ignore invisible
/// ones would compare a name.
///
/// Upper case first, because that spells out what has no capital of its own: on APFS `ſ` is `s`,
/// `ﬁ` is `fi` and `ß` is `ss`.
pub fn fold(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
    }
    let visible = name.chars().filter(|character| !is_invisible(*character));
    Cow::Owned(visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect())
}

/// Characters that file systems which ignore case also ignore in names: HFS+ some of them, Linux (ext4,
/// f2fs and tmpfs with `casefold`) all that Unicode calls default ignorable.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether the glob matches the path below `prefix`, or a directory above it.
fn glob_covers(glob: &str, prefix: &Path, path: &AbsPath, case: Case) -> bool {
    let Some(below) = case.below(prefix, path.as_path()) else { return false };
    let exact = |part: &Path| fast_glob::glob_match(glob, part.as_os_str().as_bytes());
    let folded = match case {
        Case::Exact => None,
        Case::Fold => Some(fold(glob)),
    };
    below.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| match &folded {
        None => exact(part),
        Some(folded) => {
            let text = part.to_string_lossy();
            fast_glob::glob_match(folded.as_ref(), fold(&text).as_ref())
                // Folding can take a letter out of what `[!a-z]` matches.
                || (glob.contains('[') && exact(part))
                // A `?` matches one byte only.
                || (!text.is_ascii() && fast_glob::glob_match(folded.as_ref(), in_bytes(&text)))
        }
    })
}

/// The text with one byte for each character that has more.
fn in_bytes(text: &str) -> String {
    let byte = |letter: char| if letter.is_ascii() { letter.to_ascii_lowercase() } else { '\u{1}' };
    text.chars().map(byte).collect()
}

/// A pattern without parts that say nothing: `.`, and nothing at all.
fn plain(glob: &str) -> String {
    let parts: Vec<_> = glob.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

fn clean(text: &str, base: &Path, home: &AbsPath) -> Result<AbsPath, PathError> {
    let unescaped: String = unescape(text);
    AbsPath::lexical(&model::absolute(&unescaped, base, home)?)
}

/// Splits into the literal leading components and the rest, which begins with a wildcard.
fn split_at_wildcard(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let mut component = 0;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == '/' {
            component = at + 1;
        } else if is_wildcard(character) {
            return text.split_at(component);
        }
    }
    (text, "")
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

pub(crate) fn is_wildcard(character: char) -> bool {
    matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\')
}

impl Serialize for PathRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::lexical(Path::new(text)).unwrap()
    }

    fn covers(rule: &str, target: &str, case: Case) -> bool {
        let rule = PathRule::parse(rule, Path::new("/proj"), &path("/home/u")).unwrap();
        let prefix = rule.prefix(&path("/proj"));
        rule.covers(&path(target), prefix.as_ref(), case)
    }

    #[test]
    fn a_rule_covers_what_it_names_and_everything_below() {
        for (rule, target, expected) in [
            ("**/secrets/", "/proj/a/secrets/key", true),
            ("**/./secrets", "/proj/a/secrets", true),
            ("s*//x/", "/proj/s1/x/y", true),
            ("[s]ecrets/", "/proj/secrets/key", true),
            ("secret", "/proj/secret", true),
            ("secret", "/proj/secret/a/b", true),
            ("secret", "/proj/secrets", false),
            ("./a/../secret", "/proj/secret", true),
            ("~/x", "/home/u/x/y", true),
            ("/opt/lib", "/opt/lib", true),
            ("/opt/lib", "/opt/library", false),
            ("**/.env", "/anywhere/deep/.env", true),
            ("**/.env", "/.env", true),
            ("**/.env", "/proj/.environment", false),
            ("**/*.pem", "/proj/keys/a.pem", true),
            ("**/*.pem", "/proj/keys/a.pem/inside", true),
            ("keys/*.pem", "/proj/keys/a.pem", true),
            ("keys/*.pem", "/proj/keys/deep/a.pem", false),
            ("keys/**", "/proj/keys/deep/a.pem", true),
            ("{a,b}/x", "/proj/b/x", true),
            ("a\\*b", "/proj/a*b", true),
            ("a\\*b", "/proj/aXb", false),
        ] {
            assert_eq!(covers(rule, target, Case::Exact), expected, "{rule} on {target}");
        }
    }

    #[test]
    fn deny_rules_fold_case_and_invisible_characters() {
        assert!(covers("**/.env", "/proj/.ENV", Case::Fold));
        for ignored in ["\u{200c}", "\u{ad}", "\u{34f}", "\u{2065}", "\u{fe0f}", "\u{e0041}"] {
            assert!(covers("**/.env", &format!("/proj/.e{ignored}nv"), Case::Fold), "{ignored:?}");
        }
        assert!(!covers("**/.env", "/proj/.ENV", Case::Exact));
        assert!(covers("Secret/*.TXT", "/proj/secret/a.txt", Case::Fold));
        assert!(covers("**/gr\u{fc}n.key", "/proj/gru\u{308}n.key", Case::Fold));
        assert!(covers("**/gru\u{308}n.key", "/proj/GR\u{dc}N.key", Case::Fold));
        assert!(covers("pass", "/proj/pa\u{df}", Case::Fold));
        for name in ["\u{e9}", "\u{df}", "a", "A"] {
            assert!(covers("**/?.key", &format!("/proj/{name}.key"), Case::Fold), "{name}");
        }
        assert!(covers("**/[!a-z]*.key", "/proj/A.key", Case::Fold));
        assert!(!covers("**/gr\u{fc}n.key", "/proj/gru\u{308}n.key", Case::Exact));
    }

    #[test]
    fn quoting_makes_any_path_literal() {
        let odd = "/tmp/a[1]{x}*?\\ b";
        let quoted = PathRule::quote(odd);
        let rule = PathRule::parse(&quoted, Path::new("/proj"), &path("/home/u")).unwrap();
        assert!(!rule.is_pattern());
        assert_eq!(rule.prefix(&path("/proj")), Some(path(odd)));
    }

    #[test]
    fn climbing_behind_a_wildcard_is_an_error() {
        let parse = |text| PathRule::parse(text, Path::new("/proj"), &path("/home/u"));
        assert!(matches!(parse("*/../x"), Err(PathRuleError::Climbs(_))));
        assert!(matches!(parse(""), Err(PathRuleError::Path { .. })));
        assert!(matches!(parse("a\0b"), Err(PathRuleError::Path { .. })));
    }
}
