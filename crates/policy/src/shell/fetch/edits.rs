//! The edits that make a command land in quarantine, and the names it gives things.

use std::path::{Path, PathBuf};

use model::{Action, Edit, Fetch, PathRef, shell_word};
use shell::{Command, GivenOption, Parsed, Word};

use super::super::Lower;
use super::super::follow::replacement;
use super::super::place::Target;

pub(super) fn push(
    lower: &mut Lower<'_>,
    command: &Command,
    by: &str,
    to: Target,
    new: PathBuf,
    edit: Option<Edit>,
) {
    push_edits(lower, command, by, to, new, edit.into_iter().collect(), None);
}

pub(super) fn push_edits(
    lower: &mut Lower<'_>,
    command: &Command,
    by: &str,
    to: Target,
    new: PathBuf,
    edits: Vec<Edit>,
    instead: Option<&str>,
) {
    let to = match to {
        Target::NoFile => return,
        Target::Path(path) | Target::Below(path) => path,
        Target::Unknown(why) if edits.is_empty() || !command.editable => {
            let why = format!("cannot determine where the content is written: {why}");
            return lower.opaque(lower.shown(command), &why);
        }
        // The edit makes it known.
        Target::Unknown(_) => PathRef { given: "?".into(), at: PathBuf::from("/") },
    };
    let edits = if command.editable { edits } else { Vec::new() };
    lower.push(Action::Fetch(Box::new(Fetch {
        by: by.into(),
        to,
        corrected: new,
        edits,
        at: command.span.start,
        instead: instead.map(str::to_owned),
    })));
}

/// Replaces a whole word, in its own quotes.
pub(super) fn whole(word: &Word, new: &Path) -> Option<Edit> {
    Some(Edit::replace(word.span.clone(), replacement(word, &new.display().to_string())?))
}

/// Replaces an option's value, attached or in the next word.
pub(super) fn option_edit(lower: &Lower<'_>, option: &GivenOption<'_>, new: &Path) -> Option<Edit> {
    let word = option.word?;
    if option.lead == 0 { whole(word, new) } else { edit_tail(lower, word, option.lead, new) }
}

/// Replaces what follows the first bytes of a word, where those are written plainly.
pub(super) fn edit_tail(lower: &Lower<'_>, word: &Word, lead: usize, new: &Path) -> Option<Edit> {
    let raw = lower.text.get(word.span.clone())?;
    let plain = word.value.known()?.get(..lead)?;
    raw.starts_with(plain).then(|| {
        Edit::replace(word.span.start + lead..word.span.end, shell_word(&new.display().to_string()))
    })
}

/// Adds words at the end of a command.
pub(super) fn append(command: &Command, text: &str) -> Option<Edit> {
    let last = command.words.last()?;
    Some(Edit::insert(last.span.end, format!(" {text}")))
}

/// The place in quarantine that keeps a path's last name.
pub(super) fn named(lower: &Lower<'_>, path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) => lower.scene.target().join(name),
        None => lower.scene.target().to_path_buf(),
    }
}

/// What a clone calls its directory.
pub(super) fn repository_name(source: &str, parsed: &Parsed<'_>) -> Option<String> {
    let trimmed = source.split(['?', '#']).next().unwrap_or(source).trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/.git").unwrap_or(trimmed);
    let last = trimmed.rsplit(['/', ':']).next()?;
    let last = last.strip_suffix(".git").or_else(|| last.strip_suffix(".bundle")).unwrap_or(last);
    let name =
        if parsed.has(&["--bare", "--mirror"]) { format!("{last}.git") } else { last.to_owned() };
    (!last.is_empty() && !matches!(last, "." | "..")).then_some(name)
}

/// The last name in a URL's path.
pub(super) fn last_name(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let (_, rest) = path.split_once("://").unwrap_or(("", path));
    let name = rest.trim_end_matches('/').rsplit('/').next()?;
    (rest.contains('/') && !name.is_empty()).then(|| name.to_owned())
}

pub(super) fn is_url(text: &str) -> bool {
    let scp_like = text.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.is_empty() && !host.starts_with('-')
    });
    text.contains("://") || scp_like
}

pub(super) fn is_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~'])
}

/// A package that comes from a registry or an address, not from this directory.
pub(super) fn is_foreign_spec(text: &str) -> bool {
    !is_path(text)
}
