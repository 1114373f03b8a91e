//! [`Remedies`]: the smallest sensible grant for what was denied, tried on the plan before it is named.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{AbsPath, Access, Cause, Level, Origin, Reason, Remedy, Sourced};
use plan::Grant;
use policy::{PathRule, gives_too_much};
use sandbox::Operation;

use crate::host_permissions;
use crate::prepare::Prepared;
use crate::scan::entry;

/// Grants that are tried in one run. Making a plan takes time that the run waits for.
const MOST_TRIED: usize = 24;

/// Finds grants, and remembers which of them help.
pub(crate) struct Remedies<'a> {
    prepared: &'a Prepared,
    tried: HashMap<(Access, PathBuf, PathBuf), bool>,
}

impl<'a> Remedies<'a> {
    pub(crate) fn new(prepared: &'a Prepared) -> Self {
        Self { prepared, tried: HashMap::new() }
    }

    /// A reason with a remedy that helps, or with what would help instead.
    pub(crate) fn improve(&mut self, reason: Reason, operation: Operation) -> Reason {
        let Some(Remedy::Grant { access, path, asks, .. }) = &reason.instead else {
            return reason;
        };
        let refused = AbsPath::lexical(path).ok();
        let refused = refused.and_then(|path| host_permissions::refusal(operation, &path));
        if refused.is_some_and(|errno| errno != rustix::io::Errno::NOENT.raw_os_error()) {
            let remedy = Remedy::advice("no grant helps: you cannot do that outside a run either");
            return Reason { instead: Some(remedy), ..reason };
        }
        if asks.is_some() {
            return reason;
        }
        let remedy = self.grant(*access, path, operation);
        Reason { instead: Some(remedy), ..reason }
    }

    /// The smallest sensible grant that allows an operation on a path.
    pub(crate) fn grant(&mut self, access: Access, path: &Path, operation: Operation) -> Remedy {
        let context = &self.prepared.setup.context;
        if access == Access::Write && self.is_of_shared_repository(path) {
            return Remedy::advice(
                "a linked worktree changes its own branch only; change other references in the main \
                 checkout, outside the run",
            );
        }
        let whole: Vec<_> = self.candidates(path, operation);
        for candidate in &whole {
            if self.helps(access, candidate, path) {
                return policy::remedy(context, access, candidate);
            }
        }
        let level = &self.prepared.setup.loaded.policy.level;
        let inside = AbsPath::lexical(path).is_ok_and(|path| path.is_within(&context.workspace));
        if access == Access::Write && inside && level.value < Level::Readwrite {
            return Remedy::advice("`ringwall run --level readwrite` allows writing the workspace");
        }
        Remedy::advice(if whole.is_empty() {
            "no grant is proposed for a temporary name in a directory that holds too much"
        } else {
            "no grant allows it; the run has something of its own there"
        })
    }

    /// Whether a path is in the repository that a linked worktree shares with other checkouts. A grant
    /// there would give the run all of them.
    fn is_of_shared_repository(&self, path: &Path) -> bool {
        let worktree = self.prepared.machine.worktree.as_ref();
        worktree.is_some_and(|worktree| path.starts_with(worktree.common.as_path()))
    }

    /// What could be granted, the most sensible first: the repository around it, its directory, itself.
    fn candidates(&self, path: &Path, operation: Operation) -> Vec<PathBuf> {
        let context = &self.prepared.setup.context;
        let itself = path.to_path_buf();
        if path.starts_with(context.workspace.as_path()) {
            return vec![itself];
        }
        let makes = operation == Operation::MakeDirectory;
        let is_directory = path.is_dir();
        let temporary = is_temporary(path.file_name().unwrap_or_default());
        let directory = if is_directory || (makes && !temporary) {
            Some(itself.clone())
        } else {
            path.parent().filter(|parent| parent.is_dir()).map(Path::to_path_buf)
        };
        let narrow = |directory: &PathBuf| {
            let deep = directory.components().count() > 2;
            let around = [&context.workspace, &context.home];
            deep && !around.iter().any(|inner| inner.as_path().starts_with(directory))
                && AbsPath::lexical(directory)
                    .is_ok_and(|path| gives_too_much(&path, &context.home).is_none())
        };
        let repository = directory.as_deref().and_then(repository).filter(narrow);
        let itself = Some(itself).filter(|_| !temporary);
        let mut candidates: Vec<_> =
            repository.into_iter().chain(directory.filter(narrow)).chain(itself).collect();
        candidates.dedup();
        candidates
    }

    /// Whether a path would be allowed if this was granted, by making the plan.
    fn helps(&mut self, access: Access, candidate: &Path, path: &Path) -> bool {
        let key = (access, candidate.to_path_buf(), path.to_path_buf());
        if let Some(known) = self.tried.get(&key) {
            return *known;
        }
        if self.tried.len() >= MOST_TRIED {
            // Whether it helps is likely enough.
            return true;
        }
        let helps = self.would_allow(access, candidate, path).unwrap_or(true);
        self.tried.insert(key, helps);
        helps
    }

    fn would_allow(&self, access: Access, candidate: &Path, path: &Path) -> Option<bool> {
        let Prepared { setup, machine, network, plan, .. } = self.prepared;
        let mut resolver = setup.resolver.try_borrow_mut().ok()?;
        let target = resolver.resolve(candidate).ok()?;
        let asked = AbsPath::lexical(path).ok()?;
        let write = access == Access::Write;
        let (mut policy, mut machine) = (setup.loaded.policy.clone(), machine.clone());
        let rule = PathRule::literal(&target);
        let origin = Origin::Flag("a trial".into());
        let why = Cause::Grant { rule: rule.text().into(), origin: origin.clone() };
        let list = match access {
            Access::Read => &mut policy.filesystem.allow_read,
            Access::Write => &mut policy.filesystem.allow_write,
        };
        list.push(Sourced { value: rule, origin });
        // What does not exist yet is created for the run: a directory if it is to be one.
        let directory = target.as_path().is_dir() || candidate.to_string_lossy().ends_with('/');
        let found = entry(target.as_path()).or_else(|| {
            let parent = target.parent().as_path().is_dir();
            (write && parent).then_some(if directory {
                plan::Entry::Directory
            } else {
                plan::Entry::File
            })
        });
        let named = true;
        machine.grants.push(Grant { path: target, write, entry: found, directory, named, why });
        let more = plan::compile(&policy, &setup.context, network, &plan.cwd, &machine);
        Some(more.allows(&asked, write))
    }
}

/// The repository that contains a directory.
fn repository(directory: &Path) -> Option<PathBuf> {
    let mut above = directory.ancestors();
    above.find(|at| at.join(".git").symlink_metadata().is_ok()).map(Path::to_path_buf)
}

/// Names of files that exist for a moment: locks, drafts and names with a random part. A grant of one
/// would never be used again.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let endings = [".lock", ".lck", ".tmp", ".temp", ".part", ".swp", ".swx", "~", ".new", ".bak"];
    let starts = [".#", "#", "tmp", ".tmp", "_tmp", "temp-", ".fuse_hidden", ".nfs"];
    let has = |what: &[&str], is: fn(&str, &str) -> bool| what.iter().any(|part| is(&name, part));
    has(&endings, |name, end| name.ends_with(end))
        || has(&starts, |name, start| name.starts_with(start))
        || name == "4913"
        || name.split(['.', '-', '_']).any(is_random)
}

/// Whether a part of a name looks as if it had been drawn by lot: digits, capitals and small letters in
/// an order that no word has.
fn is_random(part: &str) -> bool {
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let bytes = part.as_bytes();
    let changes = bytes.windows(2).filter(|pair| match pair {
        [a, b] => class(*a) != class(*b),
        _ => false,
    });
    let mixed = bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic);
    mixed && bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_alphanumeric) && changes.count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_names_that_last() {
        for name in [
            "index.lock",
            "tmpab12cd",
            ".x.swp",
            "file~",
            "4913",
            "x.aB3dE9",
            "cc8Kq2Lp.o",
            ".#notes",
            "notes.txt.tmp",
        ] {
            assert!(is_temporary(OsStr::new(name)), "{name}");
        }
        for name in [
            "README.md",
            "id_ed25519",
            "Cargo.toml",
            "libfoo.so.1.2",
            "MyClass.java",
            "v1",
            "utf8",
            "x86_64",
            "report-2024.pdf",
            "sha256sums",
            "package-lock.json",
        ] {
            assert!(!is_temporary(OsStr::new(name)), "{name}");
        }
    }
}
