//! Landlock: what a plan allows, as rules for the running kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use model::{Base, Kind, Net, Piece, Plan};

use crate::available::Enforcement;
use crate::child::stdio::{self, Reach};
use crate::failure::{Failed, Step};
use crate::sys;

/// The Landlock ABI version of this kernel; zero for none.
pub fn version() -> i32 {
    // LANDLOCK_CREATE_RULESET_VERSION
    sys::landlock_version()
}

/// A ruleset that is not enforced yet.
///
/// In namespaces, mounts decide what exists and what can be written, but not completely: a fifo or a
/// device can be written on a read-only mount, and an open descriptor, inherited or received over a
/// socket, bypasses them. So Landlock denies every write outside of what the plan allows, whatever
/// the mounts say, and keeps signals and abstract sockets inside. Reads are left to the mounts,
/// because every open would pay for the check, unless a directory was inherited or can be received from
/// a server of the host: then reads are allowed below the root only. (A read inside that Landlock denies never reaches the tripwire, and
/// would not be reported.) Truncation costs as much, and needs a rule only where a file was inherited
/// that must not be written.
pub(crate) struct LandlockRules<'a> {
    plan: &'a Plan,
    enforcement: Enforcement,
    /// The ABI version of this kernel.
    version: i32,
    reads: bool,
    /// What is denied where no rule allows it.
    handled: BitFlags<AccessFs>,
    ruleset: RulesetCreated,
}

impl<'a> LandlockRules<'a> {
    /// `None` where the kernel has no Landlock.
    pub(crate) fn new(plan: &'a Plan, enforcement: Enforcement) -> Result<Option<Self>, Failed> {
        let version = version();
        if version < 1 {
            return Ok(None);
        }
        let abi = ABI::from(version);
        let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
        let reach = stdio::reach();
        // Files that are created later are handed over by descriptor as well, and a server of the host
        // can hand over any.
        let reads = enforcement == Enforcement::Landlock
            || reach == Reach::Directory
            || !plan.unix_sockets.is_empty()
            || !plan.granted_later.is_empty();
        let handled = if reads {
            all
        } else if reach == Reach::File {
            all & !read
        } else {
            all & !(read | AccessFs::Truncate)
        };
        let create = || -> Result<_, RulesetError> {
            let mut ruleset = Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(handled)?
                .scope(Scope::from_all(abi))?;
            if enforcement == Enforcement::Landlock && plan.network == Net::Own {
                ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
            }
            Ok(ruleset.create()?.no_new_privs(false))
        };
        let ruleset = create().map_err(failed)?;
        Ok(Some(Self { plan, enforcement, version, reads, handled, ruleset }))
    }

    fn all(&self) -> BitFlags<AccessFs> {
        AccessFs::from_all(ABI::from(self.version))
    }

    fn read(&self) -> BitFlags<AccessFs> {
        AccessFs::from_read(ABI::from(self.version))
    }

    /// What a piece allows below it.
    fn of(&self, piece: &Piece) -> Option<BitFlags<AccessFs>> {
        if piece.kind == Kind::Read && self.enforcement == Enforcement::Landlock {
            Some(self.read())
        } else {
            may_write(self.plan, piece).then(|| self.all())
        }
    }

    /// Allows what a piece allows, below its mount.
    pub(crate) fn allow(&mut self, piece: &Piece, tree: BorrowedFd<'_>) -> Result<(), Failed> {
        match self.of(piece) {
            Some(access) => self.add(tree, piece.directory, access),
            None => Ok(()),
        }
    }

    /// The same, by its path on the host.
    pub(crate) fn allow_there(&mut self, piece: &Piece) -> Result<(), Failed> {
        let Some(access) = self.of(piece) else { return Ok(()) };
        if piece.kind == Kind::Read && self.enforcement == Enforcement::Landlock {
            return self.add_around(piece.path.as_path(), access);
        }
        self.add_path(piece.path.as_path(), piece.directory, access)
    }

    /// Enforces the rules on this process and everything that it starts.
    pub(crate) fn enforce(mut self) -> Result<i32, Failed> {
        let read = self.read();
        if self.reads
            && (self.enforcement == Enforcement::Namespaces || self.plan.base == Base::Host)
        {
            self.add_path(Path::new("/"), true, read)?;
        }
        if self.enforcement == Enforcement::Landlock {
            self.add_path(Path::new("/proc"), true, read)?;
        }
        // They can be opened by their names, such as `/dev/stderr`, as well. A file without a mount,
        // such as a pipe, gets no rule and needs none.
        for (descriptor, _, leave) in stdio::files() {
            let read = if leave.read { AccessFs::ReadFile.into() } else { BitFlags::EMPTY };
            let write = if leave.write {
                AccessFs::WriteFile | AccessFs::Truncate
            } else {
                BitFlags::EMPTY
            };
            let _ = self.add(descriptor, false, read | write);
        }
        // Only access rights that this kernel knows are requested, so all must be enforced.
        match self.ruleset.restrict_self().map_err(failed)?.ruleset {
            RulesetStatus::FullyEnforced => Ok(self.version),
            status => Err(failed(format!("the kernel reports {status:?}"))),
        }
    }

    /// Allows a tree except what is denied in it. Landlock has no exceptions, so the entries around
    /// the denied one are allowed one by one.
    fn add_around(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Failed> {
        let closed = |piece: &Piece| piece.kind == Kind::Closed;
        let pieces = &self.plan.pieces;
        if pieces.iter().any(|piece| closed(piece) && piece.path.as_path() == path) {
            return Ok(());
        }
        if !pieces.iter().any(|piece| closed(piece) && piece.path.as_path().starts_with(path)) {
            return self.add_path(path, path.is_dir(), access);
        }
        self.add_path(path, true, AccessFs::ReadDir.into())?;
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add_around(&entry.path(), access)?;
            }
        }
        Ok(())
    }

    fn add_path(
        &mut self,
        path: &Path,
        directory: bool,
        access: BitFlags<AccessFs>,
    ) -> Result<(), Failed> {
        match PathFd::new(path) {
            Ok(place) => self.add(place.as_fd(), directory, access),
            // A path that does not exist needs no rule.
            Err(_) => Ok(()),
        }
    }

    fn add(
        &mut self,
        place: BorrowedFd<'_>,
        directory: bool,
        access: BitFlags<AccessFs>,
    ) -> Result<(), Failed> {
        let access = if directory { access } else { access & AccessFs::from_file(ABI::V7) };
        let access = access & self.handled;
        if access.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset).add_rule(PathBeneath::new(place, access)).map_err(failed)?;
        Ok(())
    }
}

/// Lets this process create, remove and rename no name by itself: where its calls are intercepted, the
/// supervisor does that for it. So a call that is handed back to the kernel, such as `bind`, cannot.
pub(crate) fn deny_names() -> Result<(), Failed> {
    let version = version();
    if version < 1 {
        return Ok(());
    }
    let files = AccessFs::from_file(ABI::from(version));
    let names = AccessFs::from_write(ABI::from(version)) & !files;
    let deny = || -> Result<_, RulesetError> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(names)?
            .create()?;
        ruleset.no_new_privs(false).restrict_self()
    };
    match deny().map_err(failed)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        status => Err(failed(format!("the kernel reports {status:?}"))),
    }
}

/// Whether something may be written below a piece, as far as Landlock is asked.
pub(crate) fn may_write(plan: &Plan, piece: &Piece) -> bool {
    match piece.kind {
        Kind::Write | Kind::Overlay | Kind::Scratch | Kind::Device | Kind::Terminals => true,
        // A file of a read-only workspace that may be created later must not be denied here.
        Kind::Read => plan.granted_later.iter().any(|late| late.is_within(&piece.path)),
        // A pinned directory has the access rights of the one that contains it.
        Kind::Pinned | Kind::Closed | Kind::Outside | Kind::Text(_) | Kind::Processes => false,
    }
}

fn failed(error: impl ToString) -> Failed {
    Failed::new(Step::Landlock, io::Error::other(error.to_string()))
}
