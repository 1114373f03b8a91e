//! Links that a text makes and then walks through: the file system does not know them yet.

use std::path::{Path, PathBuf};

use model::{AbsPath, Action, PathRef};
use shell::{Analysis, Command, Value, parse_options};

use super::Scene;
use super::follow::below;
use super::options::gnu;
use super::place::{Place, Target};

/// A link that will be there once its command has run.
pub(super) struct Link {
    at: PathBuf,
    to: PathBuf,
}

/// The links that `ln` and `cp -s` of a text make.
pub(super) fn made_by(analysis: &Analysis, scene: &Scene) -> Vec<Link> {
    let makes = |command: &&Command| match command.program() {
        Some("ln" | "gln") => true,
        Some("cp") => command.arguments().iter().any(|word| {
            word.value.known().is_some_and(|text| {
                text == "--symbolic-link"
                    || text.starts_with('-') && text.contains('s') && !text.starts_with("--")
            })
        }),
        _ => false,
    };
    analysis.commands.iter().filter(makes).flat_map(|command| links_of(command, scene)).collect()
}

fn links_of(command: &Command, scene: &Scene) -> Vec<Link> {
    let grammar = gnu("tSmog", &["target-directory", "suffix"]);
    let parsed = parse_options(command.arguments(), &grammar);
    let place = Place { dir: &command.dir, home: scene.home.as_path() };
    let path = |value: &Value| match place.resolve(value) {
        Target::Path(path) => Some(path.at),
        _ => None,
    };
    let directory = parsed.last(&["-t", "--target-directory"]);
    let directory = directory.and_then(|option| option.value.as_ref());
    let operands = parsed.operands.as_slice();
    let (sources, place) = match (directory, operands.split_last()) {
        (Some(directory), _) => (operands, path(directory)),
        (None, Some((last, sources))) if !sources.is_empty() => (sources, path(&last.value)),
        _ => (operands, path(&Value::text("."))),
    };
    let Some(place) = place else { return Vec::new() };
    let mut links = Vec::new();
    for to in sources.iter().filter_map(|source| path(&source.value)) {
        // The last word is the link itself, or the directory it is made in.
        if let Some(name) = to.file_name() {
            links.push(Link { at: place.join(name), to: to.clone() });
        }
        links.push(Link { at: place.clone(), to });
    }
    links
}

/// Adds what paths through these links would reach.
pub(super) fn follow(links: &[Link], actions: &mut Vec<Action>) {
    for link in links {
        let through: Vec<_> = actions.iter().filter_map(|action| reached(action, link)).collect();
        for action in through {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
    }
}

fn reached(action: &Action, link: &Link) -> Option<Action> {
    let moved = |path: &PathRef| {
        let rest = behind(&path.at, &link.at)?;
        let at = if rest.as_os_str().is_empty() { link.to.clone() } else { link.to.join(rest) };
        Some(PathRef { given: path.given.clone(), at })
    };
    match action {
        // Creating the link does not follow it.
        Action::Path { path, by: Some(by), .. }
            if matches!(by.as_str(), "ln" | "cp" | "gln")
                && behind(&path.at, &link.at)?.as_os_str().is_empty() =>
        {
            None
        }
        Action::Path { access, path, by } => {
            Some(Action::Path { access: *access, path: moved(path)?, by: by.clone() })
        }
        Action::Enter { path, by } => Some(Action::Enter { path: moved(path)?, by: by.clone() }),
        _ => None,
    }
}

/// The rest of a path below a link: as it is walked, where `..` behind the link leaves from its
/// target, or by the texts of both.
fn behind(path: &Path, link: &Path) -> Option<PathBuf> {
    let link = AbsPath::lexical(link).ok()?;
    match path.strip_prefix(link.as_path()) {
        Ok(rest) => Some(rest.to_path_buf()),
        Err(_) => below(path, link.as_path()),
    }
}
