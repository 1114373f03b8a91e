//! [`Plan`]: what a sandbox allows, as plain data. Nothing here says how it is built.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AbsPath, ByteSize, Level, Origin, Publication};

/// Everything that is fixed about a run before it starts.
///
/// Human-readable formats show it to people and may lose bytes that are not UTF-8. Between
/// processes it is exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The directory the command works in. The run can read it.
    pub cwd: AbsPath,
    /// The workspace.
    pub workspace: AbsPath,
    /// The user's home.
    pub home: AbsPath,
    /// The level all of this follows from.
    pub level: Level,
    /// What is visible outside all pieces.
    pub base: Base,
    /// Everything that can be reached, parents before their contents.
    pub pieces: Vec<Piece>,
    /// Symbolic links outside all pieces.
    pub links: Vec<Link>,
    /// Private copies of the host's files: the source, and the destination in a private directory.
    pub copies: Vec<(AbsPath, AbsPath)>,
    /// Files of the workspace that may be created although it is read-only.
    #[serde(rename = "late")]
    pub granted_later: Vec<AbsPath>,
    /// Sockets of the host, or directories of such, that can be connected to.
    pub unix_sockets: Vec<AbsPath>,
    /// The whole environment of the command. Only the names are shown: values can be secrets.
    #[serde(serialize_with = "names", deserialize_with = "variables")]
    pub environment: Vec<(OsString, OsString)>,
    /// Which network it sees.
    pub network: Net,
    /// The ways out of its own network.
    #[serde(rename = "doors")]
    pub ports: OutboundPorts,
    /// Ports of the host that lead to servers inside.
    pub publish: Vec<Publication>,
    /// What it may use up.
    pub limits: Limits,
    /// Where what it writes in toolchains and caches is kept.
    pub layer: PrivateLayer,
}

/// Where what a run writes in toolchains and caches is kept. The host's own are never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivateLayer {
    /// In this directory, for the next run in the workspace.
    Kept(AbsPath),
    /// In memory, and gone with the run.
    Temporary(WhyTemporary),
}

/// Why nothing is kept for the next run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyTemporary {
    /// The user asked for it.
    Fresh,
    /// At this level the run writes the user's own directories.
    LevelFull,
    /// Another run in the workspace has the layer, and two cannot write it.
    InUse,
    /// The layer cannot be used.
    Unusable(String),
}

impl Default for PrivateLayer {
    fn default() -> Self {
        Self::Temporary(WhyTemporary::Fresh)
    }
}

impl fmt::Display for PrivateLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(place) => write!(f, "kept for runs in this workspace, in {place}"),
            Self::Temporary(why) => write!(f, "deleted at the end of the run: {why}"),
        }
    }
}

impl fmt::Display for WhyTemporary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh => f.write_str("`--fresh` was given"),
            Self::LevelFull => f.write_str("the level is `full`"),
            Self::InUse => f.write_str("another run in this workspace is using the private layer"),
            Self::Unusable(why) => f.write_str(why),
        }
    }
}

/// What is visible outside all pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// Nothing.
    Nothing,
    /// The host's file system, read-only.
    Host,
}

/// A part of the file system that can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where. The same path inside and outside.
    pub path: AbsPath,
    /// What is there.
    pub kind: Kind,
    /// Whether it is a directory. A directory can only be mounted on a directory, a file on a file.
    pub directory: bool,
    /// Why it is there. Human-readable formats show it as text; between processes it is exact.
    #[serde(serialize_with = "in_words", deserialize_with = "from_words")]
    pub why: Cause,
}

impl Piece {
    /// Whether what is written there belongs to the private layer of the workspace.
    pub fn is_layered(&self) -> bool {
        matches!(self.kind, Kind::Overlay | Kind::Scratch)
            && matches!(
                self.why,
                Cause::PrivateToolchain | Cause::PrivateCache | Cause::PrivateHome
            )
    }
}

/// Why a piece is in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The workspace itself.
    Workspace,
    /// The level shows the whole home directory.
    LevelFull,
    /// A toolchain of the system or of the user, to be read.
    Toolchain,
    /// A toolchain whose changes stay in the private layer.
    PrivateToolchain,
    /// A cache that is empty at first and belongs to the private layer.
    PrivateCache,
    /// What the run creates in the home directory.
    PrivateHome,
    /// Credentials among the files of a toolchain.
    Credentials,
    /// A copy of a file of the host, without values that may be secrets.
    WithoutSecrets {
        /// The names of what was removed; `None` if everything was.
        removed: Option<Vec<String>>,
    },
    /// State of the agent that stays in the run.
    AgentPrivate,
    /// State of the agent that is kept.
    AgentKept,
    /// A rule of the user allows it.
    Grant {
        /// The rule as it is written.
        rule: String,
        /// Where it is written.
        origin: Origin,
    },
    /// A rule of the user denies it.
    Denied,
    /// A protected name, or its target.
    Protected,
    /// A directory that contains a protected name.
    HoldsProtected,
    /// The file that the events of the run are written to.
    EventsFile,
    /// Files of Ringwall itself.
    Ringwall,
    /// Another checkout of the same repository.
    OtherCheckout,
    /// The repository of a linked worktree.
    Worktree(WorktreePart),
    /// A socket of a program outside the sandbox.
    HostSocket,
    /// Not granted, inside a directory that is private to the run.
    NotGranted,
    /// Devices, terminals.
    Devices,
    /// One device.
    Device,
    /// Shared memory of the run.
    SharedMemory,
    /// The processes of the run.
    Processes,
    /// Temporary files of the run.
    Temporary,
    /// A file that is generated for the run.
    Generated,
    /// Read back from text, which has only the words.
    Words(String),
}

/// A part of the repository that a linked worktree belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorktreePart {
    /// The directory that all worktrees share.
    Common,
    /// Where new objects go.
    NewObjects,
    /// Objects that exist already.
    OldObjects,
    /// The worktree's own directory in the repository.
    OwnState,
    /// What says which repository the worktree belongs to.
    Links,
    /// The worktree's own branch.
    OwnBranch,
    /// Another branch.
    OtherBranch,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workspace => "the workspace",
            Self::LevelFull => "the level is full",
            Self::Toolchain => "toolchain",
            Self::PrivateToolchain => "toolchain, private when written",
            Self::PrivateCache => "private cache",
            Self::PrivateHome => "new files in the home directory",
            Self::Credentials => "it holds credentials",
            Self::WithoutSecrets { removed: None } => "empty: it may hold secrets",
            Self::WithoutSecrets { removed: Some(removed) } => {
                return match &removed[..] {
                    [] => f.write_str("a copy"),
                    names => write!(f, "a copy without {}", names.join(", ")),
                };
            }
            Self::AgentPrivate => "the agent's own, private when written",
            Self::AgentKept => "the agent's own",
            Self::Grant { rule, origin } => return write!(f, "`{rule}` ({origin})"),
            Self::Denied => "denied",
            Self::Protected => "protected",
            Self::EventsFile => "the events of this run",
            Self::HoldsProtected => "something in it is protected",
            Self::Ringwall => "Ringwall's own",
            Self::OtherCheckout => "another checkout",
            Self::Worktree(part) => match part {
                WorktreePart::Common => "the repository of this worktree",
                WorktreePart::NewObjects => "new objects",
                WorktreePart::OldObjects => "objects that are there",
                WorktreePart::OwnState => "this worktree's own state",
                WorktreePart::Links => "where this worktree belongs",
                WorktreePart::OwnBranch => "this worktree's branch",
                WorktreePart::OtherBranch => "another branch",
            },
            Self::HostSocket => "a socket of a program outside the sandbox",
            Self::NotGranted => "not private, not granted",
            Self::Devices => "devices",
            Self::Device => "device",
            Self::SharedMemory => "private shared memory",
            Self::Processes => "the run's own processes",
            Self::Temporary => "private",
            Self::Generated => "made for the run",
            Self::Words(words) => words,
        })
    }
}

/// What a piece is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The host's, to be read.
    Read,
    /// The host's, to be read and written.
    Write,
    /// Already visible, and mounted on itself: it cannot be renamed or replaced.
    Pinned,
    /// Reads come from the host; what is written is private.
    Overlay,
    /// Empty at first, and private.
    Scratch,
    /// A file with this text.
    Text(String),
    /// Neither to be read nor to be written.
    Closed,
    /// Not allowed, although the directory around it is private: what the host has there is denied
    /// by name.
    Outside,
    /// A device of the host.
    Device,
    /// A fresh view of the run's own processes, read-only.
    Processes,
    /// Fresh pseudo terminals.
    Terminals,
}

impl Kind {
    /// Whether writing there is allowed; `None` if the piece around it decides that.
    pub fn writable(&self) -> Option<bool> {
        match self {
            Self::Write | Self::Overlay | Self::Scratch | Self::Device | Self::Terminals => {
                Some(true)
            }
            Self::Read | Self::Text(_) | Self::Closed | Self::Outside | Self::Processes => {
                Some(false)
            }
            Self::Pinned => None,
        }
    }
}

/// What the plans of most runs have in common, so that it can be mounted before there is a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usual {
    /// What of the host is shown.
    pub sources: &'static [&'static str],
    /// A directory, and everything in it.
    pub devices: &'static [(&'static str, Kind)],
    /// The symbolic links in that directory.
    pub device_links: &'static [(&'static str, &'static str)],
}

/// A symbolic link outside all pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where.
    pub path: AbsPath,
    /// What it says.
    #[serde(serialize_with = "lossy", deserialize_with = "exact")]
    pub target: PathBuf,
}

/// Which network a run sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    /// Its own loopback and nothing else.
    Own,
    /// The host's.
    Host,
}

/// The proxy's port on a run's own loopback. A process inside cannot bind it: that takes a
/// privilege.
pub const PROXY_PORT: u16 = 978;
/// The port of the name service there.
pub const NAMES_PORT: u16 = 53;

/// Ports and addresses that programs in a run's own network can connect to, besides the proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundPorts {
    /// Ports of granted names, for programs that cannot use a proxy.
    pub ports: Vec<u16>,
    /// Ports of the host's loopback that can be reached.
    pub local_ports: Vec<u16>,
    /// Granted addresses.
    pub addresses: Vec<std::net::Ipv4Addr>,
}

/// What a run may use. `None`: Ringwall sets no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of the whole tree.
    pub memory: Option<ByteSize>,
    /// What the directories that are private to the run hold, such as `/tmp`.
    pub private_files: Option<ByteSize>,
    /// Processes and threads of the whole tree.
    pub processes: Option<u32>,
    /// Whether the user set one of these two. Only then is a control group made.
    pub asked: bool,
    /// The largest file that can be written.
    pub file_size: Option<ByteSize>,
    /// Descriptors of one process.
    pub descriptors: u64,
    /// Seconds until the run is ended.
    pub wall_seconds: Option<u64>,
    /// Seconds without output or event until the run is ended.
    pub idle_seconds: Option<u64>,
}

impl Plan {
    /// What the machine is called inside, except where the run sees the host's own files.
    pub const HOST_NAME: &str = "ringwall";

    /// Where what a run creates in the home directory really is. Each entry is mounted at its own path,
    /// so that the rest of the home directory stays what it is.
    pub const PRIVATE_HOME: &str = "/run/ringwall/home";

    /// Whether nothing of the plan is at a path below home, and its first name begins with a dot.
    pub fn is_unplanned_dot(&self, path: &AbsPath) -> bool {
        let below = path.as_path().strip_prefix(self.home.as_path());
        let first = below.ok().and_then(|below| below.iter().next());
        let in_home = |piece: &&Piece| piece.path != self.home && piece.path.is_within(&self.home);
        first.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
            && !self.pieces.iter().filter(in_home).any(|piece| path.is_within(&piece.path))
            && !self.links.iter().any(|link| path.is_within(&link.path))
    }

    /// The innermost piece that contains a path.
    pub fn piece(&self, path: &AbsPath) -> Option<&Piece> {
        self.pieces.iter().rev().find(|piece| path.is_within(&piece.path))
    }

    /// Whether the plan allows a path to be read, or written.
    pub fn allows(&self, path: &AbsPath, write: bool) -> bool {
        let mut covering = self.pieces.iter().rev().filter(|piece| path.is_within(&piece.path));
        if !write {
            return match covering.next() {
                Some(piece) => !matches!(piece.kind, Kind::Closed | Kind::Outside),
                None => self.base == Base::Host,
            };
        }
        self.granted_later.contains(path)
            || covering.find_map(|piece| piece.kind.writable()).unwrap_or(false)
    }

    /// Files that may be written, although the directory around them may not.
    pub fn single_files(&self) -> impl Iterator<Item = &AbsPath> {
        let single = |piece: &&Piece| piece.kind == Kind::Write && !piece.directory;
        self.pieces.iter().filter(single).map(|piece| &piece.path).chain(&self.granted_later)
    }

    /// Whether the host's file at a path can be seen.
    pub fn shows(&self, path: &AbsPath) -> bool {
        match self.piece(path) {
            Some(piece) => matches!(
                piece.kind,
                Kind::Read | Kind::Write | Kind::Pinned | Kind::Overlay | Kind::Device
            ),
            None => self.base == Base::Host,
        }
    }

    /// Whether a directory is a parent of some piece or link.
    pub fn is_way(&self, path: &AbsPath) -> bool {
        let leads = |to: &AbsPath| to != path && to.is_within(path);
        self.pieces.iter().any(|piece| leads(&piece.path))
            || self.links.iter().any(|link| leads(&link.path))
    }
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(&path.display())
    } else {
        path.as_os_str().serialize(serializer)
    }
}

fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    if deserializer.is_human_readable() {
        String::deserialize(deserializer).map(PathBuf::from)
    } else {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

fn in_words<S: Serializer>(cause: &Cause, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(cause)
    } else {
        cause.serialize(serializer)
    }
}

fn from_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cause, D::Error> {
    if deserializer.is_human_readable() {
        String::deserialize(deserializer).map(Cause::Words)
    } else {
        Cause::deserialize(deserializer)
    }
}

/// Text has only the names of variables, so they come back without values.
fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(OsString, OsString)>, D::Error> {
    if deserializer.is_human_readable() {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(names.into_iter().map(|name| (name.into(), OsString::new())).collect())
    } else {
        Vec::deserialize(deserializer)
    }
}

fn names<S: Serializer>(
    variables: &[(OsString, OsString)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.collect_seq(variables.iter().map(|(name, _)| name.to_string_lossy()))
    } else {
        variables.serialize(serializer)
    }
}
