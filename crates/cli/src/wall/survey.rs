//! Looks at the machine once, for a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agents::Agent;
use facts::{Resolver, Step, Visit};
use model::{AbsPath, Level};
use policy::wall::{
    self, AgentSite, Entry, GIT_NAMES, Grant, Interest, Mark, Marked, Site, Worktree,
};
use policy::{Ground, Policy};

use super::who::{identity, user};
use super::worktree::worktree;

/// What was found.
pub(crate) struct Survey {
    pub(crate) site: Site,
    /// Protected paths that do not exist, but that a link already leads to.
    pub(crate) dangling: Vec<AbsPath>,
    /// What was granted outside the workspace and made for the run.
    pub(crate) made: Made,
}

/// Files and directories that were made so that there is something to grant. Gone again if nothing
/// was written.
pub(crate) struct Made(Vec<PathBuf>);

impl Made {
    /// Makes every granted path outside the workspace that is not there. Inside it, the run makes
    /// the file itself.
    fn of(grants: &mut [Grant], ground: &Ground) -> Self {
        let mut made = Vec::new();
        for grant in grants {
            let outside = !grant.path.is_within(&ground.workspace);
            if !(grant.write && grant.entry.is_none() && outside) {
                continue;
            }
            let path = grant.path.as_path();
            let (entry, done) = if grant.directory {
                (Entry::Directory, std::fs::create_dir(path))
            } else {
                let new = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
                (Entry::File, new.map(drop))
            };
            if done.is_ok() {
                grant.entry = Some(entry);
                made.push(path.to_path_buf());
            }
        }
        Self(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
                let _ = std::fs::remove_file(path);
            }
            // Fails for anything else, and where something is in it.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Looks at everything that a plan depends on.
pub(crate) fn survey(
    policy: &Policy,
    ground: &Ground,
    agent: Option<&Agent>,
    plans_only: bool,
) -> Survey {
    let environment: Vec<_> = std::env::vars_os().collect();
    let mut entries = candidates(wall::candidates(&ground.home, &environment), &ground.home);
    let mut finds = Finds::new(policy, ground);
    for path in ground.own_files.iter().chain(&ground.closed) {
        // Where a link is on the way, what it leads to is among them.
        let real = finds.resolver.resolve(path.as_path()).is_ok_and(|real| real == *path);
        if let Some(entry) = entry(path.as_path()).filter(|_| real) {
            entries.insert(path.as_path().into(), entry);
        }
    }
    finds.close_credentials(&wall::credentials(&ground.home, &environment), &mut entries);
    let home = finds.resolver.resolve(ground.home.as_path());
    // Home is no toolchain, however a variable spells it.
    entries.retain(|path, _| !home.as_ref().is_ok_and(|home| home.as_path().starts_with(path)));
    let mut grants = finds.grants(policy, ground);
    let made = if plans_only { Made(Vec::new()) } else { Made::of(&mut grants, ground) };
    let worktree = worktree(&ground.workspace);
    let mut agent = agent.map(|agent| agent_site(agent, ground)).unwrap_or_default();
    for root in roots(policy, ground, &grants) {
        finds.look_through(&root);
    }
    // What a link leads to is not there by that.
    let real = entries.iter().filter(|(_, entry)| !matches!(entry, Entry::Link(_)));
    let tools = real.filter_map(|(path, _)| AbsPath::lexical(Path::new(path)).ok());
    let repository = worktree.iter().flat_map(Worktree::places);
    let agents = agent.kept.iter().chain(&agent.private).map(|(path, _)| path.clone());
    let there: Vec<_> = tools.chain(repository).chain(agents).collect();
    finds.deny_elsewhere(policy, ground, &there);
    if policy.level.value == Level::Full {
        finds.protect_home(&ground.home);
    }
    agent.copied.retain(|(from, _)| finds.interest.hidden_by(from).is_none());
    let Finds { mut marked, dangling, unreadable, .. } = finds;
    // What cannot be looked into might hold anything.
    let frozen = |path| Marked { path, mark: Mark::Frozen, entry: Entry::Directory };
    marked.extend(unreadable.into_iter().map(frozen));
    let identity = identity(ground.home.as_path());
    let site = Site {
        entries,
        marked,
        grants,
        worktree,
        identity,
        user: user(&environment),
        terminal: None,
        agent,
        environment,
    };
    Survey { site, dangling, made }
}

/// Which candidates there are. Home, and every directory in which one stands for all names with its
/// beginning, are listed once, and then nothing need be looked for that is not in them.
fn candidates(all: Vec<PathBuf>, home: &AbsPath) -> BTreeMap<OsString, Entry> {
    let beginning = |path: &PathBuf| {
        path.file_name().and_then(|name| name.as_bytes().strip_suffix(b"*")).map(<[u8]>::to_vec)
    };
    let begun = all.iter().filter(|path| beginning(path).is_some());
    let dirs: BTreeSet<_> =
        begun.filter_map(|path| path.parent()).chain([home.as_path()]).collect();
    let listed: Vec<_> = dirs.into_iter().filter_map(|dir| Some((dir, names(dir)?))).collect();
    let mut there = BTreeMap::new();
    for path in &all {
        let known = listed.iter().find_map(|(dir, names)| {
            let below = path.strip_prefix(dir).ok()?;
            Some((dir, names, below.iter().next()?, below.iter().nth(1).is_none()))
        });
        let found = match (known, beginning(path)) {
            (Some((dir, names, _, true)), Some(start)) => {
                let names = names.iter().filter(|name| name.as_bytes().starts_with(&start));
                names.map(|name| dir.join(name)).collect()
            }
            (Some((_, names, first, _)), _) if !names.contains(first) => continue,
            _ => vec![path.clone()],
        };
        there.extend(found.into_iter().filter_map(|path| entry(&path).map(|e| (path.into(), e))));
    }
    there
}

/// The names in a directory, if it can be listed.
fn names(dir: &Path) -> Option<BTreeSet<OsString>> {
    let entries = std::fs::read_dir(dir).ok()?;
    entries.map(|entry| entry.map(|entry| entry.file_name()).ok()).collect()
}

/// What the agent that runs needs of the host.
fn agent_site(agent: &Agent, ground: &Ground) -> AgentSite {
    let needs = &agent.in_run;
    let spelt = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let project: String = ground.workspace.to_string().chars().map(spelt).collect();
    let at = |text: &str| {
        AbsPath::lexical(&ground.home.as_path().join(text.replace("{project}", &project))).ok()
    };
    for made in needs.made.iter().filter_map(|text| at(text)) {
        if made.parent().as_path().is_dir() {
            // The agent would make it by itself; without it nothing it keeps there is kept.
            let _ = std::fs::create_dir(made.as_path());
        }
    }
    let there = |path: &AbsPath| path.as_path().symlink_metadata().ok();
    let private = needs.private.iter().filter_map(|text| at(text));
    let kept = needs.kept.iter().filter_map(|text| at(text));
    let copied = needs.copied.iter().filter_map(|(from, to)| Some((at(from)?, at(to)?)));
    AgentSite {
        private: private.map(|path| (path.clone(), there(&path).is_some())).collect(),
        kept: kept.filter_map(|path| there(&path).map(|found| (path, found.is_dir()))).collect(),
        // A private copy must not hide one that is there.
        copied: copied.filter(|(from, to)| there(from).is_some() && there(to).is_none()).collect(),
        pass: needs.variables.iter().map(|name| (*name).to_owned()).collect(),
        set: needs
            .set
            .iter()
            .map(|(name, value)| {
                ((*name).to_owned(), value.replace("{home}", &ground.home.to_string()))
            })
            .collect(),
    }
}

/// What stands on a run's writable ground now.
pub(crate) struct Now {
    /// Protected names.
    pub(crate) marked: Vec<Marked>,
    /// Directories that cannot be looked into.
    pub(crate) unreadable: Vec<AbsPath>,
    /// Directories with a `HEAD`, be it a link to nothing: git may take them for repositories.
    pub(crate) heads: Vec<AbsPath>,
}

/// Protected names that stand on a run's writable ground now.
pub(crate) fn protected_now(policy: &Policy, ground: &Ground, grants: &[Grant]) -> Now {
    look_now(policy, ground, &roots(policy, ground, grants))
}

/// The same below some directories.
pub(crate) fn look_now(policy: &Policy, ground: &Ground, dirs: &[AbsPath]) -> Now {
    // What a new link leads to may have been there before.
    let mut finds = Finds { follows: false, ..Finds::new(policy, ground) };
    for dir in dirs {
        finds.look_through(dir);
    }
    let Finds { marked, unreadable, heads, .. } = finds;
    Now { marked, unreadable, heads }
}

/// The trees in which single entries may have to be treated by themselves.
fn roots(policy: &Policy, ground: &Ground, grants: &[Grant]) -> Vec<AbsPath> {
    let hides = !policy.filesystem.deny_read.is_empty();
    let writable = policy.level.value >= Level::Readwrite;
    let mut roots = Vec::new();
    if hides || writable {
        roots.push(ground.workspace.clone());
    }
    let granted = grants.iter().filter(|grant| grant.write || hides);
    roots.extend(
        granted
            .filter(|grant| grant.entry == Some(Entry::Directory))
            .map(|grant| grant.path.clone()),
    );
    roots.sort();
    let mut outermost: Vec<AbsPath> = Vec::new();
    for root in roots {
        if !outermost.iter().any(|outer| root.is_within(outer)) {
            outermost.push(root);
        }
    }
    outermost
}

struct Finds<'a> {
    interest: Interest<'a>,
    resolver: Resolver,
    marked: Vec<Marked>,
    dangling: Vec<AbsPath>,
    unreadable: Vec<AbsPath>,
    heads: Vec<AbsPath>,
    /// Whether what links lead to counts too.
    follows: bool,
}

impl<'a> Finds<'a> {
    fn new(policy: &'a Policy, ground: &Ground) -> Self {
        let mut resolver = Resolver::default();
        Self {
            interest: Interest::new(policy, ground, |path| resolver.resolve(path.as_path()).ok()),
            resolver,
            marked: Vec::new(),
            dangling: Vec::new(),
            unreadable: Vec::new(),
            heads: Vec::new(),
            follows: true,
        }
    }

    /// What rules grant and no rule denies.
    fn grants(&mut self, policy: &Policy, ground: &Ground) -> Vec<Grant> {
        let workspace = &ground.workspace;
        let mut grants = Vec::new();
        for (rule, write) in wall::granting(policy, ground) {
            let Some(prefix) = rule.value.prefix(workspace) else { continue };
            let why = format!("`{}` ({})", rule.value.text(), rule.origin);
            let mut add = |path: &AbsPath| {
                let Ok(target) = self.resolver.resolve(path.as_path()) else { return };
                // The whole machine is a level, and no grant.
                if target == AbsPath::root() && policy.level.value < Level::Full {
                    return;
                }
                // A rule that is written inside the workspace stays there: a repository can bring a
                // link under any name.
                if path.is_within(workspace) && !target.is_within(workspace) {
                    return;
                }
                let marks: Vec<_> =
                    lineage(&target).filter_map(|p| self.interest.mark(&p)).collect();
                if marks.contains(&Mark::Hidden) {
                    return;
                }
                let write = write && !marks.contains(&Mark::Frozen);
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

    fn look_through(&mut self, root: &AbsPath) {
        facts::walk(root, &mut |visit| match visit {
            Visit::Entry(path, kind) => self.entry(path, kind),
            Visit::Unreadable(path) => {
                self.unreadable.push(path.clone());
                Step::Past
            }
        });
    }

    /// What rules deny by name in what there is of the host besides the workspace and grants. A
    /// pattern that begins nowhere is about the project, and not about the certificates of the
    /// system.
    fn deny_elsewhere(&mut self, policy: &Policy, ground: &Ground, there: &[AbsPath]) {
        let files = &policy.filesystem;
        let hidden = files.deny_read.iter().map(|rule| (rule, Mark::Hidden));
        let frozen = files.deny_write.iter().map(|rule| (rule, Mark::Frozen));
        for (rule, mark) in hidden.chain(frozen) {
            let Some(prefix) = rule.value.prefix(&ground.workspace) else { continue };
            let Ok(prefix) = self.resolver.resolve(prefix.as_path()) else { continue };
            if prefix.is_within(&ground.workspace) {
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
                if self.interest.mark(&path) == Some(mark) {
                    let entry = entry(path.as_path());
                    self.marked.extend(entry.map(|entry| Marked { path, mark, entry }));
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
            if self.interest.mark(path) != Some(mark) {
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

    /// Credentials that a link leads to are closed where they lie.
    fn close_credentials(&mut self, all: &[PathBuf], entries: &mut BTreeMap<OsString, Entry>) {
        for path in all {
            let known = entries.contains_key(path.as_os_str());
            let Some(target) = known.then(|| self.resolver.resolve(path).ok()).flatten() else {
                continue;
            };
            if target.as_path() != path {
                entries.remove(path.as_os_str());
                let entry = entry(target.as_path());
                let mark = Mark::Hidden;
                self.marked.extend(entry.map(|entry| Marked { path: target, mark, entry }));
            }
        }
    }

    /// The protected names that stand in the home itself, where all of it can be written.
    fn protect_home(&mut self, home: &AbsPath) {
        for path in policy::protected_names().iter().map(|name| name.path) {
            let below: PathBuf = path.iter().collect();
            let Ok(path) = AbsPath::lexical(&home.as_path().join(below)) else { continue };
            let Some(mark) = self.interest.mark(&path) else { continue };
            let name = path.as_path().file_name().unwrap_or_default();
            let Ok(parent) = self.resolver.resolve(path.parent().as_path()) else { continue };
            let path = parent.join(name);
            let Some(found) = entry(path.as_path()) else { continue };
            if matches!(found, Entry::Link(_)) {
                self.follow(&path, mark);
            }
            self.marked.push(Marked { path, mark, entry: found });
        }
    }

    fn entry(&mut self, path: &AbsPath, kind: std::fs::FileType) -> Step {
        if path.as_path().as_os_str().as_bytes().ends_with(b"/HEAD") {
            self.heads.push(path.parent());
        }
        // Afterwards, what is hidden from the run is looked at like anything else.
        let protects = (!self.follows).then(|| self.interest.protects(path)).flatten();
        let Some(mut mark) = protects.or_else(|| self.interest.mark(path)) else {
            if kind.is_symlink() {
                self.linked_parent(path.clone());
            }
            return Step::Into;
        };
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
                // A directory is closed where it lies. No mount would make one of the link.
                mark = match mark {
                    Mark::Hidden if target == Some(Entry::Directory) => Mark::Frozen,
                    mark => mark,
                };
            }
            (Mark::Held, Entry::Directory) => self.git_directory(path),
            (Mark::Held, Entry::File) => self.git_link(path),
            _ => {}
        }
        self.marked.push(Marked { path: path.clone(), mark, entry });
        Step::Past
    }

    /// A link where a directory with protected names would be: it stays, and what it leads to has
    /// those names.
    fn linked_parent(&mut self, path: AbsPath) {
        let names = self.interest.held_by(&path);
        if names.is_empty() {
            return;
        }
        if self.follows
            && let Ok(target) = self.resolver.resolve(path.as_path())
        {
            self.names_in(&target, names.iter());
        }
        let link = std::fs::read_link(path.as_path()).unwrap_or_default();
        self.marked.push(Marked { path, mark: Mark::Frozen, entry: Entry::Link(link) });
    }

    /// A protected name that is a link protects what it leads to as well. Gives what that is.
    fn follow(&mut self, path: &AbsPath, mark: Mark) -> Option<Entry> {
        if !self.follows {
            return None;
        }
        let target = self.resolver.resolve(path.as_path()).ok()?;
        // What a link lies in itself holds more than what the name is protected for.
        if path.is_within(&target) {
            return None;
        }
        let Some(entry) = entry(target.as_path()) else {
            self.dangling.push(target);
            return None;
        };
        if mark == Mark::Held && entry == Entry::Directory {
            self.names_in(&target, GIT_NAMES.iter().map(Path::new));
        }
        self.marked.push(Marked { path: target, mark, entry: entry.clone() });
        Some(entry)
    }

    /// A file that says where the git directory is.
    fn git_link(&mut self, path: &AbsPath) {
        if self.follows
            && let Some(git) = facts::linked_git_dir(path.parent().as_path())
            && let Ok(git) = self.resolver.resolve(&git)
        {
            self.names_in(&git, GIT_NAMES.iter().map(Path::new));
        }
    }

    fn git_directory(&mut self, git: &AbsPath) {
        for name in GIT_NAMES {
            let Ok(path) = AbsPath::lexical(&git.as_path().join(name)) else { continue };
            let Some(entry) = entry(path.as_path()) else { continue };
            if matches!(entry, Entry::Link(_)) {
                self.follow(&path, Mark::Frozen);
            }
            self.marked.push(Marked { path, mark: Mark::Frozen, entry });
        }
    }

    /// Protects names in a directory that is not called as it is used.
    fn names_in(&mut self, dir: &AbsPath, names: impl Iterator<Item = impl AsRef<Path>>) {
        for name in names {
            let Ok(path) = AbsPath::lexical(&dir.as_path().join(name)) else { continue };
            match entry(path.as_path()) {
                Some(entry) => {
                    if matches!(entry, Entry::Link(_)) {
                        self.follow(&path, Mark::Frozen);
                    }
                    self.marked.push(Marked { path, mark: Mark::Frozen, entry });
                }
                None => self.dangling.push(path),
            }
        }
    }
}

/// A path and everything that it lies in.
fn lineage(path: &AbsPath) -> impl Iterator<Item = AbsPath> {
    path.as_path().ancestors().filter_map(|path| AbsPath::lexical(path).ok())
}

fn entry(path: &Path) -> Option<Entry> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return None;
        }
        // What cannot be looked at may well be there.
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
