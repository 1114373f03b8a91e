//! Directories of the host with a private layer on top.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::{AbsPath, Piece};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::mount::{FsOpenFlags, MountAttrFlags};

use super::store::Store;
use super::tree::{attach, clone_tree_of, find_below, mounted, open_without_links};

/// Directories of one mount that can share a layer.
pub(super) struct Common<'a> {
    members: Vec<&'a AbsPath>,
    /// A directory that contains all of them.
    base: AbsPath,
    lower: OwnedFd,
}

impl<'a> Common<'a> {
    /// Those in the home directory. Their layer lasts, so it always begins there.
    pub(super) fn in_home(
        home: &AbsPath,
        paths: impl Iterator<Item = &'a AbsPath>,
    ) -> Option<Self> {
        let mount = mount_of(home)?;
        let members: Vec<_> =
            paths.filter(|path| path.is_within(home) && mount_of(path) == Some(mount)).collect();
        if members.is_empty() {
            return None;
        }
        let lower = open_without_links(home.as_path(), OFlags::PATH).ok()?;
        Some(Self { members, base: home.clone(), lower })
    }

    /// Nothing where there are no two of them.
    pub(super) fn of(mut paths: impl Iterator<Item = &'a AbsPath>) -> Option<Self> {
        let first = paths.next()?;
        let mount = mount_of(first)?;
        // A layer sees one mount of the host, and nothing of those on top of it.
        let others: Vec<_> = paths.filter(|path| mount_of(path) == Some(mount)).collect();
        let members: Vec<_> = std::iter::once(first).chain(others).collect();
        let mut base = first.parent();
        while !members.iter().all(|path| path.is_within(&base)) {
            base = base.parent();
        }
        if members.len() < 2 || mount_of(&base)? != mount {
            return None;
        }
        let lower = open_without_links(base.as_path(), OFlags::PATH).ok()?;
        Some(Self { members, base, lower })
    }

    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.members.contains(&&piece.path)
    }

    pub(super) fn lower(&self) -> BorrowedFd<'_> {
        self.lower.as_fd()
    }
}

/// One layer for several directories, each of which is mounted separately. A layer takes as long to
/// make and to end as a dozen other mounts.
pub(super) struct Shared {
    tree: OwnedFd,
}

impl Shared {
    pub(super) fn of(tree: OwnedFd, store: &Store<'_>) -> io::Result<Self> {
        // Only a mounted tree can be cloned in part.
        let name = store.fresh_name();
        rustix::fs::mkdirat(&store.tree, name.as_str(), Mode::from(0o755))?;
        attach(tree.as_fd(), store.tree.as_fd(), Path::new(&name))?;
        Ok(Self { tree })
    }

    pub(super) fn part(&self, common: &Common<'_>, path: &AbsPath) -> io::Result<OwnedFd> {
        let below = path.as_path().strip_prefix(&common.base).map_err(io::Error::other)?;
        clone_tree_of(find_below(self.tree.as_fd(), below)?.as_fd())
    }
}

/// Directories that share a layer in memory.
pub(super) struct InMemory<'a> {
    common: Common<'a>,
    shared: Shared,
}

impl<'a> InMemory<'a> {
    pub(super) fn of(common: Common<'a>, store: &Store<'_>) -> io::Result<Self> {
        let shared = Shared::of(layered(common.lower(), store)?, store)?;
        Ok(Self { common, shared })
    }

    pub(super) fn part(&self, piece: &Piece) -> Option<io::Result<OwnedFd>> {
        let common = Some(&self.common).filter(|common| common.has(piece))?;
        Some(self.shared.part(common, &piece.path))
    }
}

/// Which mount a path is on.
fn mount_of(path: &AbsPath) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat =
        rustix::fs::statx(rustix::fs::CWD, path.as_path(), flags, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

/// The same, with the layer in the store.
pub(super) fn layered(lower: BorrowedFd<'_>, store: &Store<'_>) -> io::Result<OwnedFd> {
    let directory = || {
        let (name, flags) = (store.fresh_name(), OFlags::PATH | OFlags::CLOEXEC);
        rustix::fs::mkdirat(&store.tree, name.as_str(), Mode::from(0o755))?;
        rustix::fs::openat(&store.tree, name.as_str(), flags, Mode::empty())
    };
    let (upper, work) = (directory()?, directory()?);
    over(lower, upper.as_fd(), work.as_fd(), Sync::Asked)
}

/// Whether what is written reaches the disk when a program asks for it, and at the end of the mount.
/// The whole file system is written then, so a run that wrote nothing would wait for everyone else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Asked,
    Never,
}

/// A tree with a layer on top.
pub(super) fn over(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    work: BorrowedFd<'_>,
    sync: Sync,
) -> io::Result<OwnedFd> {
    let by_descriptor = |fd: BorrowedFd<'_>| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [
        ("lowerdir", by_descriptor(lower)),
        ("upperdir", by_descriptor(upper)),
        ("workdir", by_descriptor(work)),
    ] {
        rustix::mount::fsconfig_set_string(&context, key, value)?;
    }
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    if sync == Sync::Never {
        rustix::mount::fsconfig_set_flag(&context, "volatile")?;
    }
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}
