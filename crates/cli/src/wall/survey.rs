//! Looks at the machine once, for a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use agents::Agent;
use facts::{Resolver, Step, Visit};
use model::{AbsPath, FileText, Level};
use policy::wall::{
    self, AgentSite, Entry, GIT_NAMES, Grant, Identity, Interest, Mark, Marked, Site, User,
    Worktree,
};
use policy::{Ground, Policy};

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
    let mut resolver = Resolver::default();
    let mut entries = candidates(wall::candidates(&ground.home, &environment));
    for path in ground.own_files.iter().chain(&ground.closed) {
        if let Some(entry) = entry(path.as_path()) {
            entries.insert(path.as_path().to_path_buf(), entry);
        }
    }
    let mut grants = grants(policy, ground, &mut resolver);
    let made = if plans_only { Made(Vec::new()) } else { Made::of(&mut grants, ground) };
    let worktree = worktree(&ground.workspace);
    let mut finds = Finds { resolver, ..Finds::new(policy, ground) };
    for root in roots(policy, ground, &grants) {
        finds.look_through(&root);
    }
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
        agent: agent.map(|agent| agent_site(agent, ground)).unwrap_or_default(),
        environment,
    };
    Survey { site, dangling, made }
}

/// Which candidates there are. A directory in which one stands for all names with its beginning is
/// listed once, and then the others in it need not be looked for.
fn candidates(all: Vec<PathBuf>) -> BTreeMap<PathBuf, Entry> {
    let beginning = |path: &PathBuf| {
        path.file_name().and_then(|name| name.as_bytes().strip_suffix(b"*")).map(<[u8]>::to_vec)
    };
    let mut listed: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
    for dir in all.iter().filter(|path| beginning(path).is_some()).filter_map(|path| path.parent())
    {
        listed.entry(dir.to_path_buf()).or_insert_with(|| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).collect()
        });
    }
    let there = |path: PathBuf| Some((path.clone(), entry(&path)?));
    all.into_iter()
        .flat_map(|path| {
            let dir = path.parent().unwrap_or(&path);
            match (listed.get(dir), beginning(&path), path.file_name()) {
                (Some(names), Some(start), _) => names
                    .iter()
                    .filter(|name| name.as_bytes().starts_with(&start))
                    .filter_map(|name| there(dir.join(name)))
                    .collect(),
                (Some(names), None, Some(name)) if !names.contains(name) => Vec::new(),
                _ => there(path).into_iter().collect(),
            }
        })
        .collect()
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
    fn new(policy: &'a Policy, ground: &'a Ground) -> Self {
        Self {
            interest: Interest::new(policy, ground),
            resolver: Resolver::default(),
            marked: Vec::new(),
            dangling: Vec::new(),
            unreadable: Vec::new(),
            heads: Vec::new(),
            follows: true,
        }
    }

    fn look_through(&mut self, root: &AbsPath) {
        facts::walk(root.as_path(), &mut |visit| match visit {
            Visit::Entry(path, kind) => self.entry(path, kind),
            Visit::Unreadable(path) => {
                self.unreadable.extend(AbsPath::lexical(path).ok());
                Step::Past
            }
        });
    }

    fn entry(&mut self, path: &Path, kind: std::fs::FileType) -> Step {
        let Ok(path) = AbsPath::lexical(path) else { return Step::Past };
        if path.as_path().ends_with("HEAD") {
            self.heads.push(path.parent());
        }
        let Some(mark) = self.interest.mark(&path) else {
            if kind.is_symlink() {
                self.linked_parent(path);
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
            (_, Entry::Link(_)) => self.follow(&path, mark),
            (Mark::Held, Entry::Directory) => self.git_directory(&path),
            (Mark::Held, Entry::File) => self.git_link(&path),
            _ => {}
        }
        self.marked.push(Marked { path, mark, entry });
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

    /// A protected name that is a link protects what it leads to as well.
    fn follow(&mut self, path: &AbsPath, mark: Mark) {
        if !self.follows {
            return;
        }
        let Ok(target) = self.resolver.resolve(path.as_path()) else { return };
        // What a link lies in itself holds more than what the name is protected for.
        if path.is_within(&target) {
            return;
        }
        match entry(target.as_path()) {
            Some(entry) => {
                if mark == Mark::Held && entry == Entry::Directory {
                    self.names_in(&target, GIT_NAMES.iter().map(Path::new));
                }
                self.marked.push(Marked { path: target, mark, entry });
            }
            None => self.dangling.push(target),
        }
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

fn grants(policy: &Policy, ground: &Ground, resolver: &mut Resolver) -> Vec<Grant> {
    let workspace = &ground.workspace;
    let mut grants = Vec::new();
    for (rule, write) in wall::granting(policy, ground) {
        let Some(prefix) = rule.value.prefix(workspace) else { continue };
        let why = format!("`{}` ({})", rule.value.text(), rule.origin);
        let mut add = |path: &AbsPath| {
            let Ok(target) = resolver.resolve(path.as_path()) else { return };
            // A rule that is written inside the workspace stays there: a repository can bring a
            // link under any name.
            if path.is_within(workspace) && !target.is_within(workspace) {
                return;
            }
            let entry = entry(target.as_path());
            let directory = rule.value.text().ends_with('/');
            grants.push(Grant { path: target, write, entry, directory, why: why.clone() });
        };
        if rule.value.is_pattern() {
            facts::walk(prefix.as_path(), &mut |visit| {
                let Visit::Entry(path, _) = visit else { return Step::Past };
                let Ok(path) = AbsPath::lexical(path) else { return Step::Past };
                if rule.value.matches(&path, workspace) {
                    add(&path);
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

/// The repository of a linked worktree, if both sides say that it is one: a file in a checkout
/// alone could name any directory.
fn worktree(workspace: &AbsPath) -> Option<Worktree> {
    let mut resolver = Resolver::default();
    let mut real = |path: PathBuf| resolver.resolve(&path).ok();
    let own = real(facts::linked_git_dir(workspace.as_path())?)?;
    let text = |path: PathBuf| match facts::read_small(&path) {
        FileText::Text(text) => Some(text.trim().to_owned()),
        _ => None,
    };
    let common = real(own.as_path().join(text(own.as_path().join("commondir"))?))?;
    let back = real(own.as_path().join(text(own.as_path().join("gitdir"))?))?;
    if own.parent().parent() != common || back != workspace.join(".git".as_ref()) {
        return None;
    }
    let head = text(own.as_path().join("HEAD"))?;
    let branch = head.strip_prefix("ref:").map(|name| PathBuf::from(name.trim()));
    // A run can write this file: nothing in it may lead out of the branches.
    let plain = |name: &PathBuf| name.components().all(|part| matches!(part, Component::Normal(_)));
    let branch = branch.filter(|name| name.starts_with("refs/heads") && plain(name));
    let (mut branch_dirs, mut missing) = (Vec::new(), Vec::new());
    let mut others = Vec::new();
    let mut own_refs = Vec::new();
    for base in ["", "logs"] {
        let Some(branch) = &branch else { continue };
        let Ok(own_ref) = AbsPath::lexical(&common.as_path().join(base).join(branch)) else {
            continue;
        };
        let dir = own_ref.parent();
        if real(dir.as_path().to_path_buf()).as_ref() != Some(&dir) {
            continue;
        }
        if !dir.as_path().is_dir() {
            missing.push(dir.clone());
        }
        for (path, directory) in listing(&dir) {
            if path != own_ref {
                others.push((path, directory));
            }
        }
        branch_dirs.push(dir);
        own_refs.push(own_ref);
    }
    let shared = wall::WRITTEN.iter().chain(wall::KEPT).map(|name| common.as_path().join(name));
    let own_kept = wall::OWN_KEPT.iter().map(|name| own.as_path().join(name));
    let present = shared.chain(own_kept).filter_map(|path| {
        let directory = path.symlink_metadata().ok()?.is_dir();
        Some((AbsPath::lexical(&path).ok()?, directory))
    });
    let present = present.collect();
    Some(Worktree { common, own, head, branch_dirs, missing, own_refs, others, present })
}

fn listing(dir: &AbsPath) -> Vec<(AbsPath, bool)> {
    let Ok(entries) = std::fs::read_dir(dir.as_path()) else { return Vec::new() };
    let entry = |entry: std::fs::DirEntry| {
        Some((dir.join(&entry.file_name()), entry.file_type().ok()?.is_dir()))
    };
    entries.flatten().filter_map(entry).collect()
}

/// The name and address under which the user commits, from the user's own files.
fn identity(home: &Path) -> Option<Identity> {
    let files = [home.join(".config/git/config"), home.join(".gitconfig")];
    let (mut name, mut email) = (None, None);
    for file in files {
        let FileText::Text(text) = facts::read_small(&file) else { continue };
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(heading) = line.strip_prefix('[') {
                section = heading.trim_end_matches(']').trim().to_ascii_lowercase();
            } else if section == "user"
                && let Some((key, value)) = line.split_once('=')
            {
                let value = value.trim().trim_matches('"').to_owned();
                match key.trim().to_ascii_lowercase().as_str() {
                    "name" => name = Some(value),
                    "email" => email = Some(value),
                    _ => {}
                }
            }
        }
    }
    Some(Identity { name: name?, email: email? })
}

fn user(environment: &[(OsString, OsString)]) -> User {
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let named = environment.iter().find(|(name, _)| name == "USER" || name == "LOGNAME");
    let plain = |name: &&OsString| {
        !name.is_empty()
            && name.as_bytes().iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
    };
    let name = named.map(|(_, value)| value).filter(plain);
    let name = name.map_or_else(|| "user".into(), |name| name.to_string_lossy().into_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    User { uid, gid, name, host }
}
