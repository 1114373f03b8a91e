//! Looks at the machine once, for a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agents::Agent;
use facts::git_config::Role;
use model::{AbsPath, Level, PrivateLayer};
use plan::toolchain::Use;
use plan::{AgentState, Entry, Grant, Machine, Mark, Marked, Rows, Settings, Worktree};
use policy::{Context, Policy};

use crate::build_files::BuildFiles;
use crate::committed::Committed;
use crate::created::Created;
use crate::later::Later;
use crate::prepare::Purpose;
use crate::scan::{Scan, entry};
use crate::sockets;
use crate::user::user;
use crate::worktree::worktree;

/// What was found.
pub(crate) struct Survey {
    pub(crate) machine: Machine,
    /// Protected paths that do not exist, but that a link already leads to.
    pub(crate) dangling: Vec<AbsPath>,
    /// Directories that git takes for repositories although their names do not end in `.git`.
    pub(crate) repositories: Vec<AbsPath>,
    /// Files that the user's own build acts on.
    pub(crate) build: BuildFiles,
    /// Names that act only later, as they were.
    pub(crate) later: Later,
    /// The repositories in and around the workspace.
    pub(crate) committed: Committed,
    /// Grants that are left out, and why.
    pub(crate) left_out: Vec<String>,
    /// What was granted outside the workspace and created for the run.
    pub(crate) created: Created,
}

/// Looks at everything that a plan depends on.
pub(crate) fn survey(
    policy: &Policy,
    context: &Context,
    agent: Option<&Agent>,
    output: Option<&Path>,
    purpose: Purpose,
) -> Survey {
    let environment: Vec<_> = std::env::vars_os().collect();
    let rows = plan::candidates(&context.home, &environment);
    let (mut entries, settings) = candidates(&rows, &context.home);
    let mut scan = Scan::new(policy, context);
    for path in context.own_files.iter().chain(&context.closed) {
        // If a link is on the way, its target is among them too.
        let real = scan.resolver.resolve(path.as_path()).is_ok_and(|real| real == *path);
        if let Some(entry) = entry(path.as_path()).filter(|_| real) {
            entries.insert(path.as_path().into(), entry);
        }
    }
    scan.close_credentials(&plan::credentials(&context.home, &environment), &mut entries);
    let home = scan.resolver.resolve(context.home.as_path());
    // Home is not a toolchain, however a variable spells it.
    entries.retain(|path, _| !home.as_ref().is_ok_and(|home| home.as_path().starts_with(path)));
    let mut grants = scan.grants(plan::granting(policy, context), policy, context);
    let granting = policy.network.allow_unix.iter().map(|rule| (rule, false));
    let unix_grants = sockets::granted(scan.grants(granting, policy, context));
    let created = match purpose {
        Purpose::Plan => Created::default(),
        Purpose::Run => Created::of(&mut grants, context),
    };
    let worktree = worktree(&context.workspace);
    let mut agent = agent.map(|agent| agent_state(agent, context, purpose)).unwrap_or_default();
    let roots = roots(policy, context, &grants);
    for root in &roots {
        scan.look_through(root);
    }
    if policy.level.value >= Level::Readwrite {
        scan.checkout_above();
        scan.bare_repositories();
    }
    // The run must not write the file that its events go to.
    let output = output.filter(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    let output = output.and_then(|path| AbsPath::lexical(&path).ok());
    let events_file = output.filter(|path| roots.iter().any(|root| path.is_within(root)));
    let mark_events =
        |path: &AbsPath| Marked { path: path.clone(), mark: Mark::ReadOnly, entry: Entry::File };
    scan.marked.extend(events_file.as_ref().map(mark_events));
    // A link does not make its target visible.
    let real = entries.iter().filter(|(_, entry)| !matches!(entry, Entry::Link(_)));
    let tools = real.filter_map(|(path, _)| AbsPath::lexical(Path::new(path)).ok());
    let repository = worktree.iter().flat_map(Worktree::places);
    let agents = agent.kept.iter().chain(&agent.private).map(|(path, _)| path.clone());
    let there: Vec<_> = tools.chain(repository).chain(agents).collect();
    scan.deny_elsewhere(policy, context, &there);
    if policy.level.value == Level::Full {
        scan.protect_home(&context.home);
    }
    agent.copied.retain(|(from, _)| scan.protections.hidden_by(from).is_none());
    let seen = grants.iter().map(|grant| &grant.path).chain([&context.workspace]).chain(&there);
    let seen: Vec<_> = seen.collect();
    let mut host_sockets = std::mem::take(&mut scan.sockets);
    host_sockets.extend(sockets::bound_in(&seen, &grants));
    host_sockets.retain(|path| sockets::is_served(path, &unix_grants));
    let Scan { mut marked, dangling, unreadable, heads, left_out, build, later, .. } = scan;
    // Below level `readwrite` nothing in the workspace can be written.
    let writable = policy.level.value >= Level::Readwrite;
    let later = Later::before(if writable { later } else { Vec::new() }, &mut marked);
    let committed = match purpose {
        Purpose::Run if writable => Committed::before(&marked, &context.workspace),
        _ => Committed::default(),
    };
    let repositories =
        heads.into_iter().filter(|dir| facts::is_repository(dir.as_path())).collect();
    // A directory that cannot be read might contain anything.
    let read_only = |path| Marked { path, mark: Mark::ReadOnly, entry: Entry::Directory };
    marked.extend(unreadable.into_iter().map(read_only));
    let home = context.home.as_path();
    let around = facts::git_root(context.workspace.as_path()).map(|top| top.join(".git/config"));
    let own_files = facts::git_config::own_files(home);
    let git = facts::git_config::users_settings(&own_files, home, around.as_deref());
    let machine = Machine {
        entries,
        settings,
        marked,
        grants,
        unix_grants,
        host_sockets,
        worktree,
        git,
        user: user(&environment),
        agent,
        environment,
        set_by_user: Vec::new(),
        events_file,
        layer: PrivateLayer::default(),
    };
    Survey { machine, dangling, repositories, build, later, committed, left_out, created }
}

/// Which candidates exist, and what the files with settings among them say. Home is listed once, as is
/// every directory in which a `*` stands for names. After that, nothing that is missing in the
/// listing needs a lookup, and neither does anything below a directory that does not exist.
fn candidates(
    all: &[Rows],
    home: &AbsPath,
) -> (BTreeMap<OsString, Entry>, BTreeMap<OsString, Settings>) {
    let mut found = Found { home: home.as_path().to_path_buf(), ..Found::default() };
    for Rows { dir, itself, parts } in all {
        let first = dir.strip_prefix(home).ok().and_then(|below| below.iter().next());
        if first.is_some_and(|first| !found.listings.names(home.as_path()).contains(first)) {
            continue;
        }
        if let Some(kind) = itself
            && !found.look(dir.clone(), *kind)
        {
            continue;
        }
        for (name, kind) in *parts {
            for path in found.listings.expand(dir, name) {
                found.look(path, *kind);
            }
        }
    }
    (found.entries, found.settings)
}

/// What exists of the candidates.
#[derive(Default)]
struct Found {
    entries: BTreeMap<OsString, Entry>,
    settings: BTreeMap<OsString, Settings>,
    listings: Listings,
    home: PathBuf,
}

impl Found {
    fn look(&mut self, path: PathBuf, kind: Use) -> bool {
        let Some(entry) = entry(&path) else { return false };
        if matches!(kind, Use::Settings(_))
            && let Some(read) = read_settings(&path, &self.home)
        {
            self.settings.insert(path.clone().into(), read);
        }
        self.entries.insert(path.into(), entry);
        true
    }
}

/// What is listed of the host while candidates are looked for.
#[derive(Default)]
struct Listings {
    known: BTreeMap<PathBuf, BTreeSet<OsString>>,
}

impl Listings {
    fn names(&mut self, dir: &Path) -> &BTreeSet<OsString> {
        if !self.known.contains_key(dir) {
            self.known.insert(dir.to_path_buf(), names(dir).unwrap_or_default());
        }
        self.known.entry(dir.to_path_buf()).or_default()
    }

    /// The paths in a directory that a name with a `*` stands for. Without one, that is the name.
    fn expand(&mut self, dir: &Path, name: &str) -> Vec<PathBuf> {
        if !name.contains('*') {
            return vec![dir.join(name)];
        }
        let mut paths = vec![dir.to_path_buf()];
        for part in Path::new(name) {
            if part.as_bytes().contains(&b'*') {
                for dir in std::mem::take(&mut paths) {
                    let names = self.names(&dir).iter();
                    let names = names.filter(|name| plan::toolchain::matches_name(part, name));
                    paths.extend(names.map(|name| dir.join(name)));
                }
            } else {
                for path in &mut paths {
                    path.push(part);
                }
            }
        }
        paths
    }
}

/// More than any file of settings has.
const MOST_SETTINGS: u64 = 1 << 20;

/// What a file with settings says, and where it really is.
fn read_settings(path: &Path, home: &Path) -> Option<Settings> {
    let real = AbsPath::lexical(&path.canonicalize().ok()?).ok()?;
    let text = || {
        let file = facts::open_users_file(path, home)?;
        let metadata = file.metadata().ok()?;
        let fits = metadata.is_file() && metadata.len() <= MOST_SETTINGS;
        fits.then(|| std::io::read_to_string(file.take(MOST_SETTINGS)).ok()).flatten()
    };
    let text = text();
    Some(Settings { real, text })
}

/// The names in a directory, if it can be listed.
fn names(dir: &Path) -> Option<BTreeSet<OsString>> {
    let entries = std::fs::read_dir(dir).ok()?;
    entries.map(|entry| entry.map(|entry| entry.file_name()).ok()).collect()
}

/// What the agent that runs needs of the host.
fn agent_state(agent: &Agent, context: &Context, purpose: Purpose) -> AgentState {
    let needs = &agent.in_run;
    let spelt = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let project: String = context.workspace.to_string().chars().map(spelt).collect();
    let at = |text: &str| {
        AbsPath::lexical(&context.home.as_path().join(text.replace("{project}", &project))).ok()
    };
    for made in needs.made.iter().filter_map(|text| at(text)) {
        if purpose == Purpose::Run && made.parent().as_path().is_dir() {
            // The agent would create it. Without it, nothing in it is kept.
            let _ = std::fs::create_dir(made.as_path());
        }
    }
    let there = |path: &AbsPath| path.as_path().symlink_metadata().ok();
    let private = needs.private.iter().filter_map(|text| at(text));
    let kept = needs.kept.iter().filter_map(|text| at(text));
    let copied = needs.copied.iter().filter_map(|(from, to)| Some((at(from)?, at(to)?)));
    AgentState {
        private: private.map(|path| (path.clone(), there(&path).is_some())).collect(),
        kept: kept.filter_map(|path| there(&path).map(|found| (path, found.is_dir()))).collect(),
        // A private copy must not hide a file that exists.
        copied: copied.filter(|(from, to)| there(from).is_some() && there(to).is_none()).collect(),
        pass: needs.variables.iter().map(|name| (*name).to_owned()).collect(),
        set: needs
            .set
            .iter()
            .map(|(name, value)| {
                ((*name).to_owned(), value.replace("{home}", &context.home.to_string()))
            })
            .collect(),
    }
}

/// What exists now where the run may write.
pub(crate) struct Now {
    /// Protected names.
    pub(crate) marked: Vec<Marked>,
    /// Directories that cannot be read.
    pub(crate) unreadable: Vec<AbsPath>,
    /// Directories with a `HEAD`, even if it is a dangling link: git may take them for
    /// repositories.
    pub(crate) heads: Vec<AbsPath>,
    /// Files that the user's own build acts on.
    pub(crate) build: BuildFiles,
    /// What configurations make git read and run in the workspace.
    pub(crate) named: Vec<(AbsPath, Role)>,
    /// Files with names that act only later.
    pub(crate) later: BTreeSet<AbsPath>,
    /// Whether there is more than could be kept.
    pub(crate) full: bool,
}

/// Protected names that exist now where the run may write.
pub(crate) fn protected_now(
    policy: &Policy,
    context: &Context,
    grants: &[Grant],
    since: SystemTime,
) -> Now {
    let mut scan = Scan { since: Some(since), ..Scan::new(policy, context) };
    for dir in swept(roots(policy, context, grants)) {
        scan.look_through(&dir);
    }
    scan.checkout_above();
    scan.now()
}

/// The trees in which a run can have left something. Entries of `/proc` and `/sys` are no one's files, and
/// vanish while they are looked at.
fn swept(mut roots: Vec<AbsPath>) -> Vec<AbsPath> {
    let kernel = |path: &AbsPath| ["/proc", "/sys"].iter().any(|at| path.as_path().starts_with(at));
    roots.retain(|root| !kernel(root));
    roots
}

/// The same below some directories.
pub(crate) fn look_now(
    policy: &Policy,
    context: &Context,
    dirs: &[AbsPath],
    since: SystemTime,
) -> Now {
    let mut scan = Scan { since: Some(since), ..Scan::new(policy, context) };
    for dir in dirs {
        scan.look_through(dir);
    }
    scan.now()
}

impl Scan<'_> {
    fn now(mut self) -> Now {
        self.bare_repositories();
        let full = self.is_full();
        let Self { marked, unreadable, heads, build, named, later, .. } = self;
        Now { marked, unreadable, heads, build, named, later: later.into_iter().collect(), full }
    }
}

/// The trees that may contain entries to hide or protect.
fn roots(policy: &Policy, context: &Context, grants: &[Grant]) -> Vec<AbsPath> {
    let hides = !policy.filesystem.deny_read.is_empty();
    let writable = policy.level.value >= Level::Readwrite;
    let mut roots = Vec::new();
    if hides || writable {
        roots.push(context.workspace.clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_rules_apply_in_every_grant_and_the_sweep_leaves_out_the_kernels_file_systems() {
        let at = |text: &str| AbsPath::lexical(Path::new(text)).unwrap();
        let context = Context {
            workspace: at("/work"),
            home: at("/home/u"),
            closed: Vec::new(),
            unfit: None,
            agent_files: Vec::new(),
            own_files: Vec::new(),
            grant_file: "/work/ringwall.toml".into(),
            settings: policy::SettingsContext::default(),
        };
        let mut policy = Policy::built_in();
        let rule = policy::PathRule::in_workspace("*.key");
        policy.filesystem.deny_read.push(model::Sourced::built_in(rule));
        let grant = |text: &str| Grant {
            path: at(text),
            write: false,
            entry: Some(Entry::Directory),
            directory: true,
            named: true,
            why: model::Cause::Workspace,
        };
        let grants = ["/sys/kernel", "/opt/data"].map(grant);
        let before = roots(&policy, &context, &grants);
        assert_eq!(before, ["/opt/data", "/sys/kernel", "/work"].map(at));
        assert_eq!(swept(before), ["/opt/data", "/work"].map(at));
    }
}
