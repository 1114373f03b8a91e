//! Landlock: the rights that a plan's ground gives, as rules of the running kernel.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use model::{Base, Kind, Net, Piece, Plan};
use rustix::fs::FileType;

use crate::failure::{Failed, Step};
use crate::got::Enforcement;
use crate::sys;

/// The version of Landlock that this kernel speaks; zero for none.
pub fn version() -> i32 {
    // LANDLOCK_CREATE_RULESET_VERSION
    sys::landlock_version()
}

/// Restricts this process and everything it starts.
///
/// In namespaces, mounts decide what is there and what can be written; Landlock adds that nothing
/// is written outside the ground whatever the mounts say, that no mount changes, and that signals
/// and abstract sockets stay inside. Reading is left to the mounts, because every open would pay
/// for a rule about it, with one exception: what was handed over as an open descriptor leads around
/// them. Then reading below a directory is allowed at the root only (a read that Landlock refuses
/// inside never reaches the tripwire, and nobody would be told), and a file is not truncated.
pub(crate) fn restrict(plan: &Plan, enforcement: Enforcement) -> Result<i32, Failed> {
    let version = version();
    if version < 1 {
        return Ok(0);
    }
    let abi = ABI::from(version);
    let fail = |error: String| Failed::new(Step::Landlock, io::Error::other(error));
    // The rights asked for are those that this kernel knows, so all of them must hold.
    match apply(plan, enforcement, abi).map_err(|error| fail(error.to_string()))? {
        RulesetStatus::FullyEnforced => Ok(version),
        status => Err(fail(format!("the kernel answers {status:?}"))),
    }
}

fn apply(
    plan: &Plan,
    enforcement: Enforcement,
    abi: ABI,
) -> Result<RulesetStatus, landlock::RulesetError> {
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    let given = given();
    // Files that are made later are handed over by descriptor as well.
    let reads =
        enforcement == Enforcement::Landlock || given == Given::Directory || !plan.late.is_empty();
    let handled = if reads {
        all
    } else if given == Given::File {
        all & !read
    } else {
        // Whoever may truncate is asked at every open as well. What cannot be written behind a
        // mount cannot be truncated there.
        all & !(read | AccessFs::Truncate)
    };
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)?
        .scope(Scope::from_all(abi))?;
    if enforcement == Enforcement::Landlock && plan.network == Net::Own {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut created = ruleset.create()?.no_new_privs(false);
    if reads && (enforcement == Enforcement::Namespaces || plan.base == Base::Host) {
        created = add(created, std::path::Path::new("/"), true, read)?;
    }
    for piece in &plan.pieces {
        let access: BitFlags<AccessFs> = match &piece.kind {
            Kind::Write | Kind::Overlay | Kind::Scratch | Kind::Device | Kind::Terminals => all,
            // What is held in place has the rights of what it lies in. A file of a read-only
            // workspace that may be made later must not be refused here.
            Kind::Pinned | Kind::Closed | Kind::Outside | Kind::Text(_) | Kind::Processes => {
                continue;
            }
            Kind::Read if enforcement == Enforcement::Landlock => {
                created = add_around(created, plan, piece.path.as_path(), read)?;
                continue;
            }
            Kind::Read if plan.late.iter().any(|late| late.is_within(&piece.path)) => all,
            Kind::Read => continue,
        };
        created = add(created, piece.path.as_path(), piece.directory, access & handled)?;
    }
    if enforcement == Enforcement::Landlock {
        created = add(created, std::path::Path::new("/proc"), true, read)?;
    }
    Ok(created.restrict_self()?.ruleset)
}

/// The most that the command can do with what it gets on its standard descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Given {
    /// Read and write it.
    Stream,
    /// Open it anew, with other rights.
    File,
    /// Reach what is below it.
    Directory,
}

fn given() -> Given {
    let all = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let kind = |descriptor| match rustix::fs::fstat(descriptor) {
        Ok(file) => match FileType::from_raw_mode(file.st_mode) {
            FileType::Directory => Given::Directory,
            FileType::RegularFile => Given::File,
            _ => Given::Stream,
        },
        // One that is not there leads nowhere.
        Err(rustix::io::Errno::BADF) => Given::Stream,
        Err(_) => Given::Directory,
    };
    all.map(kind).into_iter().max().unwrap_or(Given::Directory)
}

/// Opens a tree except what is closed in it. Landlock knows no exceptions, so the entries around
/// the closed one are opened one by one.
fn add_around(
    mut ruleset: landlock::RulesetCreated,
    plan: &Plan,
    path: &std::path::Path,
    access: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, landlock::RulesetError> {
    let closed = |piece: &Piece| piece.kind == Kind::Closed;
    if plan.pieces.iter().any(|piece| closed(piece) && piece.path.as_path() == path) {
        return Ok(ruleset);
    }
    if !plan.pieces.iter().any(|piece| closed(piece) && piece.path.as_path().starts_with(path)) {
        return add(ruleset, path, path.is_dir(), access);
    }
    ruleset = add(ruleset, path, true, AccessFs::ReadDir.into())?;
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            ruleset = add_around(ruleset, plan, &entry.path(), access)?;
        }
    }
    Ok(ruleset)
}

fn add(
    ruleset: landlock::RulesetCreated,
    path: &std::path::Path,
    directory: bool,
    access: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, landlock::RulesetError> {
    // Ground that is not there gives no right.
    let Ok(place) = PathFd::new(path) else { return Ok(ruleset) };
    let access = if directory { access } else { access & AccessFs::from_file(ABI::V7) };
    ruleset.add_rule(PathBeneath::new(place, access))
}
