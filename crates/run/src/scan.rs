//! [`Scan`]: finds the entries of a tree that the sandbox must hide or protect.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use facts::{Resolver, Step, Visit};
use model::{AbsPath, Cause, FileText, Level, Sourced};
use plan::{Entry, GIT_NAMES, Grant, Mark, Marked, Protections};
use policy::{Context, PathRule, Policy};

use crate::aside::Opened;
use crate::build_files::{BuildFiles, names_toolchain};
use crate::sweep;
use facts::git_config::{Named, Role, named_files, spread, users_files};

/// Larger than the configuration of almost any repository, in bytes.
const LARGE: u64 = 256 << 10;

/// The most that is kept of what a run may have left, in bytes of paths.
const MOST_BYTES: usize = 16 << 20;

/// The entries that the sandbox must hide or protect, while they are collected.
pub(crate) struct Scan<'a> {
    pub(crate) protections: Protections<'a>,
    pub(crate) resolver: Resolver,
    pub(crate) marked: Vec<Marked>,
    pub(crate) dangling: Vec<AbsPath>,
    pub(crate) unreadable: Vec<AbsPath>,
    pub(crate) heads: Vec<AbsPath>,
    pub(crate) build: BuildFiles,
    /// Files with names that act only when the user does something.
    pub(crate) later: Vec<AbsPath>,
    /// Sockets, whoever has bound them.
    pub(crate) sockets: Vec<AbsPath>,
    /// Grants that are left out, and why.
    pub(crate) left_out: Vec<String>,
    /// When the run began that is over now. Then the targets of links are not marked, since they may
    /// have existed before, and every git directory is searched as well.
    pub(crate) since: Option<SystemTime>,
    pub(crate) workspace: AbsPath,
    pub(crate) home: AbsPath,
    /// How long the paths are together that are kept of what a run may have left.
    pub(crate) bytes: usize,
    /// After a run: what the configurations that are there now make git read and run in the workspace.
    pub(crate) named: Vec<(AbsPath, Role)>,
    /// What the user's own configuration makes git read and run in every repository, once it is
    /// asked for.
    pub(crate) users: Option<Vec<Named>>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(policy: &'a Policy, context: &Context) -> Self {
        let mut resolver = Resolver::default();
        Self {
            protections: Protections::new(policy, context, |path| {
                resolver.resolve(path.as_path()).ok()
            }),
            resolver,
            marked: Vec::new(),
            dangling: Vec::new(),
            unreadable: Vec::new(),
            heads: Vec::new(),
            build: BuildFiles::default(),
            later: Vec::new(),
            sockets: Vec::new(),
            left_out: Vec::new(),
            since: None,
            workspace: context.workspace.clone(),
            home: context.home.clone(),
            bytes: 0,
            named: Vec::new(),
            users: None,
        }
    }

    /// What rules grant and no rule denies.
    pub(crate) fn grants<'r>(
        &mut self,
        rules: impl Iterator<Item = (&'r Sourced<PathRule>, bool)>,
        policy: &Policy,
        context: &Context,
    ) -> Vec<Grant> {
        let workspace = &context.workspace;
        let mut grants = Vec::new();
        for (rule, write) in rules {
            let Some(prefix) = rule.value.prefix(workspace) else { continue };
            let why = Cause::Grant { rule: rule.value.text().into(), origin: rule.origin.clone() };
            let mut add = |path: &AbsPath| {
                let Ok((target, links)) = self.resolver.follow(path.as_path()) else { return };
                // Another run may have put a link there, and its target was never meant to be
                // granted.
                let private = |path: &AbsPath| match policy::secret(path, &context.home) {
                    None if context.home.is_within(path) => Some("your home"),
                    secret => secret,
                };
                if let (None, Some(what)) = (private(path), private(&target)) {
                    self.left_out
                        .push(format!("{why} does not grant {path}: it is a link to {what}"));
                    return;
                }
                if rule.value.is_pattern() && links.iter().any(|link| link.is_within(&prefix)) {
                    return;
                }
                // The root directory cannot be granted; level `full` is for that.
                if target == AbsPath::root() && policy.level.value < Level::Full {
                    return;
                }
                // A rule for a path inside the workspace does not reach outside: a repository can
                // contain a link under any name.
                if path.is_within(workspace) && !target.is_within(workspace) {
                    return;
                }
                let marks: Vec<_> =
                    target.ancestors().filter_map(|p| self.protections.mark(&p)).collect();
                if marks.contains(&Mark::Hidden) {
                    return;
                }
                let write = write && !marks.contains(&Mark::ReadOnly);
                let entry = entry(target.as_path());
                let directory = rule.value.text().ends_with('/');
                let (named, why) = (!rule.value.is_pattern(), why.clone());
                grants.push(Grant { path: target, write, entry, directory, named, why });
            };
            if rule.value.is_pattern() {
                facts::walk(&prefix, &mut |visit| {
                    let Visit::Entry(path, _) = visit else { return Step::Past };
                    if rule.value.matches(path, workspace) {
                        add(path);
                        return Step::Past;
                    }
                    Step::Into
                });
            } else {
                add(&prefix);
            }
        }
        grants
    }

    pub(crate) fn look_through(&mut self, root: &AbsPath) {
        // Before a run, no mount can be placed at a path that is too long.
        let walk = if self.since.is_some() { facts::walk_deep } else { facts::walk };
        if self.protections.acts_later(root) {
            return self.later_tree(root);
        }
        walk(root, &mut |visit| match visit {
            Visit::Entry(path, _) if is_too_long(path) && !self.is_new(path) => Step::Into,
            Visit::Entry(path, kind) => self.entry(path, kind),
            Visit::Unreadable(path) => {
                if self.has_room(path) {
                    self.unreadable.push(path.clone());
                }
                Step::Past
            }
        });
    }

    /// Whether there is room for one more path of what a run may have left. If not, that is reported.
    fn has_room(&mut self, path: &AbsPath) -> bool {
        if self.since.is_some() {
            self.bytes += path.as_path().as_os_str().len();
        }
        self.bytes <= MOST_BYTES
    }

    /// Whether more was found than there is room for.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Marks what rules deny by name among the host's files besides the workspace and grants. A
    /// pattern without a leading directory is about the project, and not about the certificates of
    /// the system.
    pub(crate) fn deny_elsewhere(&mut self, policy: &Policy, context: &Context, there: &[AbsPath]) {
        let files = &policy.filesystem;
        let hidden = files.deny_read.iter().map(|rule| (rule, Mark::Hidden));
        let frozen = files.deny_write.iter().map(|rule| (rule, Mark::ReadOnly));
        for (rule, mark) in hidden.chain(frozen) {
            let Some(prefix) = rule.value.prefix(&context.workspace) else { continue };
            let Ok(prefix) = self.resolver.resolve(prefix.as_path()) else { continue };
            if prefix.is_within(&context.workspace) {
                continue;
            }
            let concerned = |tool: &AbsPath| match (prefix.is_within(tool), tool.is_within(&prefix))
            {
                (true, _) => Some(prefix.clone()),
                (_, true) => Some(tool.clone()),
                _ => None,
            };
            let concerned: BTreeSet<_> = match policy.level.value {
                Level::Full => BTreeSet::from([prefix.clone()]),
                _ => there.iter().filter_map(concerned).collect(),
            };
            for path in concerned {
                if self.protections.mark(&path) == Some(mark) {
                    self.mark_there(&path, mark);
                } else if rule.value.is_pattern() {
                    self.deny_below(&path, mark);
                }
            }
        }
    }

    fn deny_below(&mut self, root: &AbsPath, mark: Mark) {
        facts::walk(root, &mut |visit| {
            let (path, kind) = match visit {
                Visit::Entry(path, kind) => (path, Some(kind)),
                Visit::Unreadable(path) => (path, None),
            };
            if self.protections.mark(path) != Some(mark) {
                return Step::Into;
            }
            let entry = match kind {
                Some(kind) if kind.is_symlink() => {
                    self.follow(path, mark);
                    return Step::Past;
                }
                Some(kind) if !kind.is_dir() => Entry::File,
                _ => Entry::Directory,
            };
            self.marked.push(Marked { path: path.clone(), mark, entry });
            Step::Past
        });
    }

    /// Credentials that a link leads to are closed at their real path.
    pub(crate) fn close_credentials(
        &mut self,
        all: &[PathBuf],
        entries: &mut BTreeMap<OsString, Entry>,
    ) {
        for path in all {
            let known = entries.contains_key(path.as_os_str());
            let Some(target) = known.then(|| self.resolver.resolve(path).ok()).flatten() else {
                continue;
            };
            if target.as_path() != path {
                // The toolchain's directory in the run has no link, so the name itself is closed, too.
                let kind = if target.as_path().is_dir() { Entry::Directory } else { Entry::File };
                entries.insert(path.into(), kind);
                self.mark_there(&target, Mark::Hidden);
            }
        }
    }

    /// The protected names in the home directory itself, if all of it can be written.
    pub(crate) fn protect_home(&mut self, home: &AbsPath) {
        for path in policy::protected_names().iter().map(|name| name.path) {
            let below: PathBuf = path.iter().collect();
            let Ok(path) = AbsPath::lexical(&home.as_path().join(below)) else { continue };
            let Some(mark) = self.protections.mark(&path) else { continue };
            let name = path.as_path().file_name().unwrap_or_default();
            let Ok(parent) = self.resolver.resolve(path.parent().as_path()) else { continue };
            let path = parent.join(name);
            self.mark_there(&path, mark);
        }
    }

    /// Marks what exists at a path, and what it leads to. Returns whether anything exists there.
    fn mark_there(&mut self, path: &AbsPath, mark: Mark) -> bool {
        let Some(entry) = entry(path.as_path()) else { return false };
        if matches!(entry, Entry::Link(_)) {
            self.follow(path, mark);
        }
        self.marked.push(Marked { path: path.clone(), mark, entry });
        true
    }

    fn entry(&mut self, path: &AbsPath, kind: std::fs::FileType) -> Step {
        self.build.note(path, kind);
        if path.as_path().as_os_str().as_bytes().ends_with(b"/HEAD") && self.has_room(path) {
            self.heads.push(path.parent());
        }
        if kind.is_socket() && self.since.is_none() {
            self.sockets.push(path.clone());
        }
        // After the run, what was hidden from it is checked like anything else.
        let protects = self.since.is_some().then(|| self.protections.protects(path)).flatten();
        let armed = || names_toolchain(path, kind).then_some(Mark::ReadOnly);
        let mark = protects.or_else(|| self.protections.mark(path)).or_else(armed);
        let Some(mark) = mark else {
            if self.protections.begins_later(path) {
                return self.later(path, kind);
            }
            if kind.is_symlink() {
                self.linked_parent(path.clone());
            }
            return Step::Into;
        };
        self.mark(path, kind, mark)
    }

    /// An entry with a name that acts only later. A link is protected like any other name: what it
    /// leads to would not be judged.
    fn later(&mut self, path: &AbsPath, kind: std::fs::FileType) -> Step {
        if kind.is_dir() {
            self.later_tree(path);
        } else if kind.is_file() {
            self.later.push(path.clone());
        } else {
            self.mark(path, kind, Mark::ReadOnly);
        }
        Step::Past
    }

    fn later_tree(&mut self, root: &AbsPath) {
        let walk = if self.since.is_some() { facts::walk_deep } else { facts::walk };
        walk(root, &mut |visit| match visit {
            Visit::Entry(path, kind) if self.protections.mark(path).is_some() => {
                self.entry(path, kind)
            }
            Visit::Entry(_, kind) if kind.is_dir() => Step::Into,
            Visit::Entry(path, kind) => self.later(path, kind),
            Visit::Unreadable(path) => {
                self.unreadable.push(path.clone());
                Step::Past
            }
        });
    }

    fn mark(&mut self, path: &AbsPath, kind: std::fs::FileType, mut mark: Mark) -> Step {
        let entry = if kind.is_dir() {
            Entry::Directory
        } else if kind.is_symlink() {
            Entry::Link(std::fs::read_link(path.as_path()).unwrap_or_default())
        } else {
            Entry::File
        };
        match (mark, &entry) {
            (_, Entry::Link(_)) => {
                let target = self.follow(path, mark);
                // A directory is closed at its real path. A mount cannot be placed on the link.
                mark = match mark {
                    Mark::Hidden if target == Some(Entry::Directory) => Mark::ReadOnly,
                    mark => mark,
                };
            }
            (Mark::Pinned, Entry::Directory) => self.git_directory(path),
            (Mark::Pinned, Entry::File) => self.git_link(path),
            _ => {}
        }
        self.marked.push(Marked { path: path.clone(), mark, entry });
        Step::Past
    }

    /// A link at the path of a directory with protected names. It must stay, and its target has
    /// those names.
    fn linked_parent(&mut self, path: AbsPath) {
        let names = self.protections.held_by(&path);
        if names.is_empty() {
            return;
        }
        if self.since.is_none()
            && let Ok(target) = self.resolver.resolve(path.as_path())
        {
            self.names_in(&target, names.iter());
        }
        let link = std::fs::read_link(path.as_path()).unwrap_or_default();
        self.marked.push(Marked { path, mark: Mark::ReadOnly, entry: Entry::Link(link) });
    }

    /// A protected name that is a link protects its target as well. Returns what the target is.
    fn follow(&mut self, path: &AbsPath, mark: Mark) -> Option<Entry> {
        if self.since.is_some() {
            return None;
        }
        let (target, links) = self.resolver.follow(path.as_path()).ok()?;
        // Changing one of several links changes what the name leads to.
        for link in links.into_iter().filter(|link| link != path) {
            let Some(entry @ Entry::Link(_)) = entry(link.as_path()) else { continue };
            self.marked.push(Marked { path: link, mark: Mark::ReadOnly, entry });
        }
        // A directory that contains the link holds more than what the name is protected for.
        if path.is_within(&target) {
            return None;
        }
        let Some(entry) = entry(target.as_path()) else {
            self.dangling.push(target);
            return None;
        };
        if mark == Mark::Pinned && entry == Entry::Directory {
            self.names_in(&target, GIT_NAMES.iter().map(Path::new));
        }
        self.marked.push(Marked { path: target, mark, entry: entry.clone() });
        Some(entry)
    }

    /// A file that says where the git directory is.
    fn git_link(&mut self, path: &AbsPath) {
        if let Some(git) = facts::linked_git_dir(path.parent().as_path())
            && let Ok(git) = self.resolver.resolve(&git)
        {
            if self.since.is_none() {
                self.names_in(&git, GIT_NAMES.iter().map(Path::new));
            }
            self.named_by(&git, &path.parent());
        }
    }

    fn git_directory(&mut self, git: &AbsPath) {
        for name in GIT_NAMES {
            let Ok(path) = AbsPath::lexical(&git.as_path().join(name)) else { continue };
            self.mark_there(&path, Mark::ReadOnly);
        }
        self.named_by(git, &git.parent());
        if let Some(since) = self.since {
            self.inside_git(git, since);
        }
    }

    /// Looks for what is new inside a git directory, besides what belongs there: git acts on a
    /// repository wherever it is.
    fn inside_git(&mut self, git: &AbsPath, since: SystemTime) {
        let (objects, head) = (git.join("objects".as_ref()), git.join("HEAD".as_ref()));
        let known: Vec<_> = GIT_NAMES.iter().map(|name| git.join(name.as_ref())).collect();
        facts::walk_deep(git, &mut |visit| {
            let (path, kind) = match visit {
                Visit::Entry(path, kind) => (path, kind),
                Visit::Unreadable(path) => {
                    if sweep::is_new(path.as_path(), since) {
                        self.unreadable.push(path.clone());
                    }
                    return Step::Past;
                }
            };
            if known.contains(path) || *path == head {
                return Step::Past;
            }
            if kind.is_dir() && path.parent() == objects && !may_hold_more(path, since) {
                return Step::Past;
            }
            if self.protections.protects(path).is_some() && !self.is_new(path) {
                return Step::Into;
            }
            self.entry(path, kind)
        });
    }

    /// Whether something was created or changed during the run.
    fn is_new(&self, path: &AbsPath) -> bool {
        let Some(since) = self.since else { return false };
        if !is_too_long(path) {
            return sweep::is_new(path.as_path(), since);
        }
        let name = path.as_path().file_name().unwrap_or_default();
        let opened = path.as_path().parent().and_then(Opened::new);
        let found = opened.as_ref().and_then(|dir| dir.look(name));
        opened.into_iter().for_each(Opened::close);
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        found.is_none_or(|found| {
            let changed = (found.st_ctime.unsigned_abs(), found.st_ctime_nsec);
            changed >= (since.as_secs(), u64::from(since.subsec_nanos()))
        })
    }

    /// A checkout around the workspace: what its configuration names may be in the workspace.
    pub(crate) fn checkout_above(&mut self) {
        let Some(top) = facts::git_root(self.workspace.as_path()) else { return };
        let Ok(top) = AbsPath::lexical(&top) else { return };
        if top == self.workspace {
            return;
        }
        let git = top.join(".git".as_ref());
        let own = facts::linked_git_dir(top.as_path()).and_then(|git| self.real(&git));
        self.named_by(&own.unwrap_or(git), &top);
    }

    /// What the configurations of bare repositories name.
    pub(crate) fn bare_repositories(&mut self) {
        for dir in self.heads.clone() {
            if facts::is_repository(dir.as_path()) {
                self.named_by(&dir, &dir);
            }
        }
    }

    fn real(&mut self, path: &Path) -> Option<AbsPath> {
        self.resolver.resolve(path).ok()
    }

    /// The files that a repository's configuration, or the user's own, makes git read and run in a
    /// checkout are part of the repository.
    fn named_by(&mut self, git: &AbsPath, checkout: &AbsPath) {
        let common = match facts::read_small(git.join("commondir".as_ref()).as_path()) {
            FileText::Text(text) => self.real(&git.as_path().join(text.trim())),
            _ => None,
        };
        let home = self.home.clone();
        let mut named: Vec<_> = [Some(git), common.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|dir| ["config", "config.worktree"].map(|name| dir.join(name.as_ref())))
            .filter(|config| !self.is_large_and_new(config))
            .flat_map(|config| named_files(config.as_path(), home.as_path()))
            .collect();
        let users = self.users.get_or_insert_with(|| {
            let files = users_files(home.as_path());
            files.iter().flat_map(|file| named_files(file, home.as_path())).collect()
        });
        named.extend(users.iter().cloned());
        for Named { path, role } in named {
            let open = path.as_os_str().as_bytes().contains(&b'*');
            let path = checkout.as_path().join(path);
            if !open {
                self.protect_named(&path, role, git);
            } else if path.starts_with(self.workspace.as_path()) {
                // What a shell completes: only what is there can be known.
                for path in spread(&path) {
                    self.protect_named(&path, role, git);
                }
            }
        }
    }

    /// Whether a run may have made a configuration large, to make the search long. Then it is not harmless,
    /// and is moved aside.
    fn is_large_and_new(&self, config: &AbsPath) -> bool {
        let found = config.as_path().symlink_metadata();
        self.is_new(config) && found.is_ok_and(|found| found.len() > LARGE || found.nlink() > 1)
    }

    /// Protects a file that git reads or runs, and every link on the way to it.
    fn protect_named(&mut self, path: &Path, role: Role, git: &AbsPath) {
        // A path that ends in `..` has no name of its own.
        let resolved = path.file_name().is_none().then(|| self.real(path)).flatten();
        let path = resolved.as_ref().map_or(path, AbsPath::as_path);
        let Some(name) = path.file_name() else { return };
        let Some(Ok((parent, mut links))) = path.parent().map(|dir| self.resolver.follow(dir))
        else {
            return;
        };
        let path = parent.join(name);
        if role == Role::Word && !is_program(path.as_path()) {
            return;
        }
        let target = self.real(path.as_path()).unwrap_or_else(|| path.clone());
        // Elsewhere nothing can be written.
        if !path.is_within(&self.workspace) && !target.is_within(&self.workspace) {
            return;
        }
        if self.since.is_some() {
            self.named.extend([(path, role), (target, role)]);
            return;
        }
        links.retain(|link| link.is_within(&self.workspace));
        for link in links {
            self.mark_there(&link, Mark::ReadOnly);
        }
        let whole = |dir: &AbsPath| git.is_within(dir) || self.workspace.is_within(dir);
        if whole(&path) || whole(&target) {
            // A whole checkout cannot be made read-only; the hooks in it can.
            if role == Role::Hooks {
                self.names_in(&target, HOOKS.iter().map(Path::new));
            }
        } else if !self.mark_there(&path, Mark::ReadOnly) {
            self.dangling.push(path);
        }
    }

    /// Protects names in a directory that is used under another name.
    fn names_in(&mut self, dir: &AbsPath, names: impl Iterator<Item = impl AsRef<Path>>) {
        for name in names {
            let Ok(path) = AbsPath::lexical(&dir.as_path().join(name)) else { continue };
            if !self.mark_there(&path, Mark::ReadOnly) {
                self.dangling.push(path);
            }
        }
    }
}

/// Whether a system call cannot take a path.
fn is_too_long(path: &AbsPath) -> bool {
    path.as_path().as_os_str().len() >= facts::PATH_MAX
}

/// Whether a directory of objects may contain anything but old objects. Most file systems count the
/// directories in a directory among its links.
fn may_hold_more(path: &AbsPath, since: SystemTime) -> bool {
    sweep::is_new(path.as_path(), since)
        || path.as_path().symlink_metadata().is_ok_and(|found| found.nlink() != 2)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
}

/// Whether git runs a file of this name in a directory of hooks.
pub(crate) fn is_hook(path: &Path) -> bool {
    path.file_name().is_some_and(|name| HOOKS.iter().any(|hook| name == *hook))
}

/// The hooks that git knows.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// What exists at a path.
pub(crate) fn entry(path: &Path) -> Option<Entry> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return None;
        }
        // An entry that cannot be inspected may exist.
        Err(_) => return Some(Entry::File),
    };
    Some(if metadata.is_dir() {
        Entry::Directory
    } else if metadata.is_symlink() {
        Entry::Link(std::fs::read_link(path).ok()?)
    } else {
        Entry::File
    })
}
