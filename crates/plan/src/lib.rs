//! [`compile`]: makes a [`Plan`] from a policy and from what is known about the machine.
//!
//! Pure: the caller looks at the machine first ([`Machine`]), the plan is data, and nothing here
//! says how the kernel enforces it.

mod environment;
mod explain;
mod files;
mod git_files;
mod ports;
mod protections;
mod quiet_list;
mod shown;
pub mod toolchain;
mod usual;
pub mod without_secrets;
mod worktree;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::{
    AbsPath, Base, Cause, GitSettings, Kind, Level, Limits, Link, Net, Piece, Plan, PrivateLayer,
    WhyTemporary,
};

pub use environment::{certificate_files, left_out as variables_left_out};
pub use explain::Explainer;
pub use ports::{too_many_ports, unpublishable};
pub use protections::{GIT_NAMES, Mark, Protections};
pub use quiet_list::QuietList;
pub use shown::Rows;
pub use usual::USUAL;
pub use worktree::{KEPT, OWN_KEPT, WRITTEN, Worktree};

use policy::{Context, NetworkRules, PathRule, Policy};
use toolchain::Use;
pub use toolchain::matches;

/// What the machine looks like, as far as a plan depends on it.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// What exists at each path that was asked for, by its text. A path that is missing here does
    /// not exist.
    pub entries: BTreeMap<OsString, Entry>,
    /// What is in files of which the run gets a copy without secrets, by their path.
    pub settings: BTreeMap<OsString, Settings>,
    /// Entries in writable directories that the sandbox must protect or hide.
    pub marked: Vec<Marked>,
    /// Where the paths of grants really lead, by the path they name.
    pub grants: Vec<Grant>,
    /// The same for sockets, and for directories of sockets.
    pub unix_grants: Vec<Grant>,
    /// Sockets of programs outside, in what the run can see, that no grant names.
    pub host_sockets: Vec<AbsPath>,
    /// The file in the workspace that events are written to.
    pub events_file: Option<AbsPath>,
    /// The environment of the caller.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that the user sets for the run.
    pub set_by_user: Vec<(OsString, OsString)>,
    /// The repository of a linked worktree.
    pub worktree: Option<Worktree>,
    /// The user's git settings, as far as they come along.
    pub git: GitSettings,
    /// Who runs.
    pub user: User,
    /// What the agent that runs needs of the host.
    pub agent: AgentState,
    /// The private layer of the workspace, or why the run has none that lasts.
    pub layer: PrivateLayer,
}

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file, or anything else.
    File,
    /// A symbolic link.
    Link(PathBuf),
}

/// A file of which the run gets a copy without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it really is.
    pub real: AbsPath,
    /// What it says; `None` if it cannot be read.
    pub text: Option<String>,
}

/// An entry that the sandbox must protect or hide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Where.
    pub path: AbsPath,
    /// What the sandbox does with it.
    pub mark: Mark,
    /// What it is.
    pub entry: Entry,
}

/// A path that a rule grants, as it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Where it leads.
    pub path: AbsPath,
    /// Whether it may be written.
    pub write: bool,
    /// What exists there; `None` if nothing does yet.
    pub entry: Option<Entry>,
    /// Whether the rule ends in a slash, and so is for a directory.
    pub directory: bool,
    /// Whether the rule names this path. If not, it is a pattern that matches the path.
    pub named: bool,
    /// The rule that grants it.
    pub why: Cause,
}

/// What the agent that runs needs of the host.
#[derive(Debug, Clone, Default)]
pub struct AgentState {
    /// Directories whose changes stay private, with whether they exist.
    pub private: Vec<(AbsPath, bool)>,
    /// Files that are copied for the run: the source and the destination.
    pub copied: Vec<(AbsPath, AbsPath)>,
    /// What is kept on the host, with whether it is a directory.
    pub kept: Vec<(AbsPath, bool)>,
    /// Variables that pass.
    pub pass: Vec<String>,
    /// Variables that are set, unless the user has set them.
    pub set: Vec<(String, String)>,
}

/// Who runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The user's name.
    pub name: String,
}

/// What must be looked at before a plan can be made, and what it is for.
pub fn candidates(home: &AbsPath, environment: &[(OsString, OsString)]) -> Vec<Rows> {
    shown::rows(home, environment).collect()
}

/// Those of them that hold credentials, and must not be read wherever they are.
pub fn credentials(home: &AbsPath, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let closed = shown::rows(home, environment).flat_map(|rows| {
        let closed = rows.parts.iter().filter(|(_, kind)| *kind == Use::Closed);
        closed.map(|(name, _)| rows.dir.join(name)).collect::<Vec<_>>()
    });
    closed.collect()
}

/// The rules that grant paths besides the workspace, with whether they allow writing.
pub fn granting<'a>(
    policy: &'a Policy,
    context: &'a Context,
) -> impl Iterator<Item = (&'a model::Sourced<PathRule>, bool)> {
    let files = &policy.filesystem;
    let read = files.allow_read.iter().chain(&context.agent_files).map(|rule| (rule, false));
    let write = files.allow_write.iter().chain(&policy.quarantine.dir).map(|rule| (rule, true));
    read.chain(write)
}

/// The plan of a run.
pub fn compile(
    policy: &Policy,
    context: &Context,
    network: &NetworkRules,
    cwd: &AbsPath,
    machine: &Machine,
) -> Plan {
    let level = policy.level.value;
    let mut layout = Layout { pieces: BTreeMap::new(), links: Vec::new() };
    if level < Level::Full {
        shown::put(&mut layout, context, machine);
    } else {
        layout.put(&context.home, Kind::Write, true, Cause::LevelFull);
    }
    agent(&mut layout, machine);
    files::put(&mut layout, context, machine, level);
    if level < Level::Full
        && let Ok(place) = AbsPath::lexical(Path::new(Plan::PRIVATE_HOME))
    {
        layout.put(&place, Kind::Scratch, true, Cause::PrivateHome);
    }
    for place in [&context.workspace, &context.home] {
        outside(&mut layout, place);
    }
    workspace(&mut layout, context, level);
    let mut granted_later = Vec::new();
    for grant in &machine.grants {
        granted_later.extend(put_grant(&mut layout, context, level, grant));
    }
    // A socket that is granted only has to be there. A directory of sockets shows nothing else.
    let sockets = machine.unix_grants.iter().filter(|grant| grant.entry == Some(Entry::File));
    for socket in sockets.filter(|_| level < Level::Full) {
        put_grant(&mut layout, context, level, socket);
    }
    if let Some(worktree) = &machine.worktree {
        worktree::put(&mut layout, worktree, context, level);
    }
    protect(&mut layout, context, machine);
    let net = if level == Level::Full { Net::Host } else { Net::Own };
    Plan {
        cwd: cwd.clone(),
        workspace: context.workspace.clone(),
        home: context.home.clone(),
        level,
        base: if level == Level::Full { Base::Host } else { Base::Nothing },
        pieces: layout.pieces.into_values().collect(),
        links: layout.links,
        copies: machine.agent.copied.clone(),
        granted_later,
        unix_sockets: machine.unix_grants.iter().map(|grant| grant.path.clone()).collect(),
        environment: environment::build(policy, context, machine, net),
        network: net,
        ports: ports::outbound_ports(network),
        publish: ports::published(policy, net),
        limits: limits(policy),
        layer: if level < Level::Full {
            machine.layer.clone()
        } else {
            PrivateLayer::Temporary(WhyTemporary::LevelFull)
        },
    }
}

/// The pieces by path. In this order, parents come before their contents.
struct Layout {
    pieces: BTreeMap<AbsPath, Piece>,
    links: Vec<Link>,
}

impl Layout {
    fn put(&mut self, path: &AbsPath, kind: Kind, directory: bool, why: Cause) {
        let piece = Piece { path: path.clone(), kind, directory, why };
        self.pieces.insert(path.clone(), piece);
    }

    fn put_entry(&mut self, path: &Path, entry: &Entry, kind: Kind, why: Cause) {
        let Ok(path) = AbsPath::lexical(path) else { return };
        match entry {
            Entry::Link(target) => self.links.push(Link { path, target: target.clone() }),
            Entry::Directory => self.put(&path, kind, true, why),
            Entry::File => self.put(&path, kind, false, why),
        }
    }

    /// The pieces that contain a path, the innermost first.
    fn covering(&self, path: &AbsPath) -> impl Iterator<Item = &Piece> {
        path.ancestors().filter_map(|dir| self.pieces.get(&dir))
    }

    /// The innermost piece that contains a path.
    fn innermost(&self, path: &AbsPath) -> Option<&Piece> {
        self.covering(path).next()
    }

    /// Whether a path belongs to `/dev`'s devices and terminals or to the run's own `/proc`, which
    /// no grant can replace.
    fn is_fixed(&self, path: &AbsPath) -> bool {
        let innermost = self.innermost(path).map(|piece| &piece.kind);
        let made = matches!(innermost, Some(Kind::Processes | Kind::Terminals | Kind::Device));
        made || path.as_path() == Path::new("/dev")
    }

    /// Whether a path is inside something that is private to the run.
    fn is_own(&self, path: &AbsPath) -> bool {
        // Of a toolchain the host has more than is shown.
        let is_part = |piece: &Piece| {
            matches!(piece.why, Cause::PrivateToolchain | Cause::WithoutSecrets { .. })
        };
        self.innermost(path).filter(|piece| !is_part(piece)).is_some_and(|piece| match piece.kind {
            Kind::Scratch | Kind::Text(_) | Kind::Device | Kind::Processes | Kind::Terminals => {
                true
            }
            Kind::Read
            | Kind::Write
            | Kind::Overlay
            | Kind::Pinned
            | Kind::Closed
            | Kind::Outside => false,
        })
    }

    /// Whether the host's file at a path can be read with the pieces so far.
    fn readable(&self, path: &AbsPath) -> bool {
        self.innermost(path).is_some_and(shows_host)
    }

    /// Whether a path can be written with the pieces so far.
    fn writable(&self, path: &AbsPath) -> bool {
        self.covering(path).find_map(|piece| piece.kind.writable()).unwrap_or(false)
    }

    /// Whether writing a path would change the host.
    fn writes_host(&self, path: &AbsPath) -> bool {
        let mut covering = self.covering(path).filter(|piece| piece.kind != Kind::Pinned);
        covering.next().is_some_and(|piece| piece.kind == Kind::Write)
    }

    /// Removes pieces of the host below something closed, because deny beats allow. Only the
    /// workspace stays; its entries are closed one by one.
    fn remove_below_closed(&mut self, context: &Context) {
        let closed = self.pieces.values().filter(|piece| piece.kind == Kind::Closed);
        let closed: HashSet<_> = closed.map(|piece| piece.path.as_path().to_path_buf()).collect();
        self.pieces.retain(|path, piece| {
            let above = || path.as_path().ancestors().skip(1);
            (!shows_host(piece) && !matches!(piece.why, Cause::WithoutSecrets { .. }))
                || context.workspace.is_within(path)
                || !above().any(|dir| closed.contains(dir))
        });
    }

    /// Removes every piece that would allow writing in Ringwall's own files, whatever put it there.
    fn remove_writable(&mut self, own: &AbsPath) {
        let gives = |kind: &Kind| matches!(kind, Kind::Write | Kind::Overlay | Kind::Pinned);
        self.pieces.retain(|path, piece| !(path.is_within(own) && gives(&piece.kind)));
    }

    /// Pins every directory between a piece and a path in it. A mount point cannot be renamed, but
    /// a directory above it could be.
    fn pin_above(&mut self, path: &AbsPath) {
        let mut at = path.parent();
        while !self.pieces.contains_key(&at) && at != at.parent() && self.innermost(&at).is_some() {
            self.put(&at, Kind::Pinned, true, Cause::HoldsProtected);
            at = at.parent();
        }
    }
}

fn shows_host(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Read | Kind::Write | Kind::Overlay | Kind::Pinned)
}

/// Handles a workspace or home inside a private directory. What the host has around it is denied by
/// name, like everything else outside, instead of being absent.
fn outside(layout: &mut Layout, place: &AbsPath) {
    let Some(innermost) = layout.innermost(place).filter(|piece| piece.kind == Kind::Scratch)
    else {
        return;
    };
    let below = place.as_path().strip_prefix(innermost.path.as_path()).ok();
    let Some(first) = below.and_then(|below| below.components().next()) else { return };
    let top = innermost.path.join(first.as_os_str());
    layout.put(&top, Kind::Outside, true, Cause::NotGranted);
}

/// The agent's own directories: reads come from the host, writes are private, except for what must
/// be kept.
fn agent(layout: &mut Layout, machine: &Machine) {
    for (path, there) in &machine.agent.private {
        let kind = if *there { Kind::Overlay } else { Kind::Scratch };
        layout.put(path, kind, true, Cause::AgentPrivate);
    }
    for (path, directory) in &machine.agent.kept {
        layout.put(path, Kind::Write, *directory, Cause::AgentKept);
    }
}

fn workspace(layout: &mut Layout, context: &Context, level: Level) {
    let kind = if level >= Level::Readwrite { Kind::Write } else { Kind::Read };
    layout.put(&context.workspace, kind, true, Cause::Workspace);
}

/// Adds what a rule grants. Returns a path that does not exist yet: it is created when it is first
/// written.
fn put_grant(
    layout: &mut Layout,
    context: &Context,
    level: Level,
    grant: &Grant,
) -> Option<AbsPath> {
    let inside = grant.path.is_within(&context.workspace);
    let given = inside && (level >= Level::Readwrite || !grant.write);
    if given
        || (grant.path == AbsPath::root() && level < Level::Full)
        || layout.is_fixed(&grant.path)
    {
        return None;
    }
    // Credentials are granted by their name, and not by a pattern that happens to match.
    let closed = layout.pieces.get(&grant.path).is_some_and(|piece| piece.kind == Kind::Closed);
    if closed && !grant.named {
        return None;
    }
    let kind = if grant.write { Kind::Write } else { Kind::Read };
    match &grant.entry {
        None => return grant.write.then(|| grant.path.clone()),
        Some(Entry::Link(_)) => {}
        Some(entry) => {
            // A path that can be read already needs no piece, and a read grant must not remove what
            // another rule allows to be written.
            if grant.write || !layout.readable(&grant.path) {
                layout.put(&grant.path, kind, *entry == Entry::Directory, grant.why.clone());
            }
        }
    }
    None
}

/// Adds protection: names that nothing may write, paths that nothing may read, Ringwall's own
/// files, other checkouts of the same repository.
fn protect(layout: &mut Layout, context: &Context, machine: &Machine) {
    let (hidden, kept): (Vec<_>, Vec<_>) =
        machine.marked.iter().partition(|marked| marked.mark == Mark::Hidden);
    // Denied entries come first: nothing inside them needs protection.
    for marked in hidden.into_iter().chain(kept) {
        // A link in the workspace may lead there. What the host has there is not shown.
        if layout.is_own(&marked.path) {
            continue;
        }
        let writable = layout.writable(&marked.path);
        let kind = match marked.mark {
            Mark::Hidden => Kind::Closed,
            Mark::ReadOnly | Mark::Pinned if !writable => continue,
            Mark::Pinned if marked.entry == Entry::Directory => Kind::Pinned,
            Mark::ReadOnly | Mark::Pinned => Kind::Read,
        };
        let why = match marked.mark {
            Mark::Hidden => Cause::Denied,
            _ if machine.events_file.as_ref() == Some(&marked.path) => Cause::EventsFile,
            Mark::ReadOnly | Mark::Pinned => Cause::Protected,
        };
        // What is moved away in a private directory has nothing of the host around it.
        let alone = layout.innermost(&marked.path).is_some_and(|piece| piece.kind == Kind::Scratch);
        layout.put(&marked.path, kind, marked.entry == Entry::Directory, why);
        if writable && !alone {
            layout.pin_above(&marked.path);
        }
    }
    close_sockets(layout, machine);
    layout.remove_below_closed(context);
    // `doctor` has its workspace there.
    for path in context.own_files.iter().filter(|path| !context.workspace.is_within(path)) {
        layout.remove_writable(path);
    }
    let own = context.own_files.iter().map(|path| (path, Cause::Ringwall));
    let others = context.closed.iter().map(|path| (path, Cause::OtherCheckout));
    for (path, why) in own.chain(others) {
        let known = machine.entries.get(path.as_path().as_os_str());
        let Some(entry) = known.filter(|entry| !matches!(entry, Entry::Link(_))) else { continue };
        // In a private directory they do not exist at all, which is safer still.
        let inside = path.is_within(&context.workspace) || layout.writes_host(path);
        // A pinned entry can still be written.
        let treated = layout.pieces.get(path).is_some_and(|piece| piece.kind != Kind::Pinned);
        if !inside || context.workspace.is_within(path) || treated {
            continue;
        }
        layout.put(path, Kind::Read, *entry == Entry::Directory, why);
        layout.pin_above(path);
    }
}

/// Closes the sockets of programs outside. Connections to them are denied anyway; what is closed cannot
/// be sent a datagram either, and cannot be replaced.
fn close_sockets(layout: &mut Layout, machine: &Machine) {
    for path in &machine.host_sockets {
        if !layout.readable(path) {
            continue;
        }
        let writable = layout.writable(path);
        layout.put(path, Kind::Closed, false, Cause::HostSocket);
        if writable {
            layout.pin_above(path);
        }
    }
}

/// Descriptors of one process, unless configured. Enough for every build seen.
const DESCRIPTORS: u64 = 65_536;
/// Processes of a run, unless configured. Stops a fork bomb, not a build.
const PROCESSES: u32 = 4_096;

fn limits(policy: &Policy) -> Limits {
    let limits = &policy.limits;
    Limits {
        memory: limits.memory.as_ref().map(|limit| limit.value),
        private_files: limits.private_files.as_ref().or(limits.memory.as_ref()).map(|it| it.value),
        processes: limits.processes.as_ref().map(|limit| limit.value).or(Some(PROCESSES)),
        asked: limits.memory.is_some() || limits.processes.is_some(),
        file_size: limits.file_size.as_ref().map(|limit| limit.value),
        descriptors: DESCRIPTORS,
        wall_seconds: limits.wall_seconds.as_ref().map(|limit| limit.value),
        idle_seconds: limits.idle_seconds.as_ref().map(|limit| limit.value),
    }
}

#[cfg(test)]
mod tests;
