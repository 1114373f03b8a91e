//! What every run sees of the host besides its workspace and grants: the rows of the toolchain
//! tables, applied to what exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::{AbsPath, Cause, Kind};

use super::toolchain::homes::TOOLCHAINS;
use super::toolchain::{SYSTEM, SYSTEM_PARTS, Use, matches};
use super::without_secrets::{Format, without_secrets};
use super::{Entry, Layout, Machine};
use policy::Context;
use policy::protected::{holds_secrets, secret};

/// The rows of one directory: nothing in it is needed if it does not exist.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The directory of a toolchain, or the root.
    pub dir: PathBuf,
    /// What it is itself.
    pub itself: Option<Use>,
    /// What is in it. A `*` stands for any part of one name.
    pub parts: &'static [(&'static str, Use)],
}

/// All rows.
pub(super) fn rows(
    home: &AbsPath,
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = Rows> {
    let system =
        [SYSTEM, SYSTEM_PARTS].map(|parts| Rows { dir: PathBuf::from("/"), itself: None, parts });
    let tools = TOOLCHAINS.iter().flat_map(|tool| {
        let mut dirs: Vec<_> = tool.homes.iter().map(|name| home.as_path().join(name)).collect();
        for dir in tool.variables.iter().filter_map(|name| by_variable(environment, name, home)) {
            // Variables usually name the usual place.
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs.into_iter().map(|dir| Rows { dir, itself: Some(tool.itself), parts: tool.parts })
    });
    system.into_iter().chain(tools)
}

fn by_variable(
    environment: &[(OsString, OsString)],
    name: &str,
    home: &AbsPath,
) -> Option<PathBuf> {
    let (_, value) = environment.iter().find(|(known, _)| known == name)?;
    let path = AbsPath::lexical(Path::new(value)).ok()?;
    // A toolchain has its own directory. A higher one would turn the variable into a grant.
    let deep = path.as_path().components().count() > 2;
    // Nor does one turn a directory of credentials into a toolchain.
    let secret = secret(&path, home).or_else(|| holds_secrets(&path, home)).is_some();
    (deep && !secret).then(|| path.as_path().to_path_buf())
}

pub(super) fn put(layout: &mut Layout, context: &Context, machine: &Machine) {
    for rows in rows(&context.home, &machine.environment) {
        if let Some(kind) = rows.itself {
            let entry = machine.entries.get(rows.dir.as_os_str());
            put_one(layout, context, machine, &rows.dir, kind, entry);
        }
        for (name, kind) in rows.parts {
            let row = rows.dir.join(name);
            let Some((start, _)) = name.split_once('*') else {
                if let Some(entry) = machine.entries.get(row.as_os_str()) {
                    put_one(layout, context, machine, &row, *kind, Some(entry));
                }
                continue;
            };
            let from = rows.dir.join(start).into_os_string();
            let begins =
                |path: &OsString| path.as_encoded_bytes().starts_with(from.as_encoded_bytes());
            let found = machine.entries.range(from.clone()..).take_while(|(path, _)| begins(path));
            for (path, entry) in found.filter(|(path, _)| matches(&row, Path::new(path))) {
                put_one(layout, context, machine, Path::new(path), *kind, Some(entry));
            }
        }
    }
}

fn put_one(
    layout: &mut Layout,
    context: &Context,
    machine: &Machine,
    path: &Path,
    kind: Use,
    entry: Option<&Entry>,
) {
    // The workspace has its own piece, and the home directory is not a toolchain.
    let home = context.home.as_path().starts_with(path);
    if home || path.starts_with(context.workspace.as_path()) {
        return;
    }
    // A directory that is a link is shown as that. What it leads to needs a grant.
    let linked = |dir: &Path| matches!(machine.entries.get(dir.as_os_str()), Some(Entry::Link(_)));
    if path.ancestors().skip(1).any(linked) {
        return;
    }
    let Ok(at) = AbsPath::lexical(path) else { return };
    match (kind, entry) {
        (Use::Scratch, _) | (Use::Frame, None) => {
            layout.put(&at, Kind::Scratch, true, Cause::PrivateCache);
        }
        // A cache that does not exist yet is private from the start.
        (Use::Overlay, None) => {
            if layout.innermost(&at).is_none_or(|piece| piece.kind != Kind::Scratch) {
                layout.put(&at, Kind::Scratch, true, Cause::PrivateCache);
            }
        }
        // What a link leads to is shown only if another row or a grant says so.
        (_, None) | (Use::Empty, Some(Entry::Link(_))) => {}
        (Use::Frame | Use::Only, Some(entry)) => {
            layout.put_entry(path, entry, Kind::Scratch, Cause::PrivateToolchain);
        }
        (Use::Settings(format), Some(_)) => put_settings(layout, machine, &at, format),
        (Use::Empty, Some(Entry::Directory)) => {
            layout.put(&at, Kind::Scratch, true, Cause::PrivateToolchain);
        }
        (Use::Empty, Some(Entry::File)) => put_text(layout, &at, None),
        (Use::Read, Some(entry)) => layout.put_entry(path, entry, Kind::Read, Cause::Toolchain),
        (Use::Overlay | Use::Layered, Some(entry)) => {
            layout.put_entry(path, entry, Kind::Overlay, Cause::PrivateToolchain);
        }
        (Use::Closed, Some(entry)) => {
            layout.put_entry(path, entry, Kind::Closed, Cause::Credentials);
        }
    }
}

/// A copy without secrets. Behind a link that the run sees, it is where the link leads.
fn put_settings(layout: &mut Layout, machine: &Machine, at: &AbsPath, format: Format) {
    let Some(settings) = machine.settings.get(at.as_path().as_os_str()) else { return };
    let place = if layout.readable(at) { &settings.real } else { at };
    if place != at && !layout.readable(place) {
        return;
    }
    let text = settings.text.as_deref();
    put_text(layout, place, text.and_then(|text| without_secrets(format, text)));
}

fn put_text(layout: &mut Layout, at: &AbsPath, shown: Option<super::without_secrets::Shown>) {
    let (text, removed) = match shown {
        Some(shown) => (shown.text, Some(shown.removed)),
        None => (String::new(), None),
    };
    layout.put(at, Kind::Text(text), false, Cause::WithoutSecrets { removed });
}
