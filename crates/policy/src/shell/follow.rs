//! Later words that mean a moved path move with it.

use std::path::{Path, PathBuf};

use model::{AbsPath, Edit};
use shell::{Command, Dir, Quote, Value, Word};

use super::Scene;
use super::place::{Place, Target};

/// Content that lands somewhere else than the text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where the text says.
    pub(crate) from: PathBuf,
    /// Where it lands.
    pub(crate) to: PathBuf,
    /// The byte offset of the command that downloads it.
    pub(crate) at: usize,
}

/// Programs whose arguments are text.
const TEXT: &[&str] =
    &["echo", "printf", "grep", "rg", "true", "false", "test", "[", "export", "sleep", "kill"];

/// The edits that make later words follow, or why that cannot be done.
pub(crate) fn follow(text: &str, scene: &Scene, moves: &[Move]) -> Result<Vec<Edit>, String> {
    let analysis = scene.analyse(text);
    let mut edits = Vec::new();
    for command in &analysis.commands {
        for one in moves.iter().filter(|one| command.span.start > one.at) {
            words(text, command, one, scene, &mut edits)?;
        }
    }
    Ok(edits)
}

fn words(
    text: &str,
    command: &Command,
    one: &Move,
    scene: &Scene,
    edits: &mut Vec<Edit>,
) -> Result<(), String> {
    let program = command.program().unwrap_or_default();
    if TEXT.contains(&program) || is_message(command) {
        return Ok(());
    }
    let targets = command.redirects.iter().map(|redirect| &redirect.target);
    for word in command.arguments().iter().chain(targets) {
        let Value::Known { text: value, tilde } = &word.value else { continue };
        if value.is_empty() || (value.starts_with('-') && value.len() > 1) || value.contains("://")
        {
            continue;
        }
        let Some(path) = absolute(value, *tilde, command, one, scene) else { continue };
        let Some(rest) = below(&path, &one.from) else { continue };
        let mut moved =
            if rest.as_os_str().is_empty() { one.to.clone() } else { one.to.join(rest) };
        if value.ends_with('/') {
            moved.push("");
        }
        let raw = text.get(word.span.clone()).unwrap_or_default();
        let editable = command.editable && !raw.is_empty() && word.inner.is_empty();
        match replacement(word, &moved.display().to_string()) {
            Some(new) if editable => edits.push(Edit::replace(word.span.clone(), new)),
            _ => {
                return Err(format!(
                    "`{raw}` refers to {}, which would have to change too",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

/// A commit message and its like.
fn is_message(command: &Command) -> bool {
    let verb = command
        .arguments()
        .iter()
        .find_map(|word| word.value.known().filter(|text| !text.starts_with('-')));
    command.program() == Some("git")
        && matches!(
            verb,
            Some("commit" | "log" | "tag" | "branch" | "checkout" | "switch" | "stash" | "clone")
        )
}

/// The path a word means. `None` for a relative word whose directory moves too.
fn absolute(
    value: &str,
    tilde: bool,
    command: &Command,
    one: &Move,
    scene: &Scene,
) -> Option<PathBuf> {
    let relative = !tilde && !value.starts_with('/');
    if relative && matches!(&command.dir, Dir::Known(dir) if below(dir, &one.from).is_some()) {
        return None;
    }
    let place = Place { dir: &command.dir, home: scene.home.as_path() };
    match place.known(value, tilde) {
        Target::Path(path) => Some(path.at),
        _ => None,
    }
}

/// The rest of a path below another, by their texts.
pub(super) fn below(path: &Path, above: &Path) -> Option<PathBuf> {
    let (path, above) = (AbsPath::lexical(path).ok()?, AbsPath::lexical(above).ok()?);
    path.as_path().strip_prefix(above.as_path()).ok().map(Path::to_path_buf)
}

/// A word's new text in the word's own quotes.
pub(super) fn replacement(word: &Word, text: &str) -> Option<String> {
    let special = |set: &[char]| text.contains(set);
    match word.quote {
        Quote::Double if !special(&['"', '$', '`', '\\', '!']) => Some(format!("\"{text}\"")),
        Quote::Single if !special(&['\'']) => Some(format!("'{text}'")),
        Quote::None | Quote::Mixed => Some(model::shell_word(text)),
        _ => None,
    }
}
