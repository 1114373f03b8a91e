//! Directories of the host with a private layer on top.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::AbsPath;
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
}

/// One layer for several directories, each of which is mounted separately. A layer takes as long to
/// make and to end as a dozen other mounts.
pub(super) struct Shared<'a> {
    common: Common<'a>,
    tree: OwnedFd,
}

impl<'a> Shared<'a> {
    pub(super) fn of(common: Common<'a>, store: &Store) -> io::Result<Self> {
        let tree = layered(common.lower.as_fd(), store)?;
        // Only a mounted tree can be cloned in part.
        let name = store.fresh_name();
        rustix::fs::mkdirat(&store.tree, name.as_str(), Mode::from(0o755))?;
        attach(tree.as_fd(), store.tree.as_fd(), Path::new(&name))?;
        Ok(Self { common, tree })
    }

    pub(super) fn has(&self, path: &AbsPath) -> bool {
        self.common.members.contains(&path)
    }

    pub(super) fn part(&self, path: &AbsPath) -> io::Result<OwnedFd> {
        let below = path.as_path().strip_prefix(&self.common.base).map_err(io::Error::other)?;
        clone_tree_of(find_below(self.tree.as_fd(), below)?.as_fd())
    }
}

/// Which mount a path is on.
fn mount_of(path: &AbsPath) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat =
        rustix::fs::statx(rustix::fs::CWD, path.as_path(), flags, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

/// A tree with a layer on top, which is kept in the store.
pub(super) fn layered(lower: BorrowedFd<'_>, store: &Store) -> io::Result<OwnedFd> {
    let directory = || {
        let (name, flags) = (store.fresh_name(), OFlags::PATH | OFlags::CLOEXEC);
        rustix::fs::mkdirat(&store.tree, name.as_str(), Mode::from(0o755))?;
        rustix::fs::openat(&store.tree, name.as_str(), flags, Mode::empty())
    };
    let (upper, work) = (directory()?, directory()?);
    let by_descriptor = |fd: BorrowedFd<'_>| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [
        ("lowerdir", by_descriptor(lower)),
        ("upperdir", by_descriptor(upper.as_fd())),
        ("workdir", by_descriptor(work.as_fd())),
    ] {
        rustix::mount::fsconfig_set_string(&context, key, value)?;
    }
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}
