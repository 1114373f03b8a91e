//! Trees that are not mounted anywhere yet, and the places to mount them on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::{AbsPath, ByteSize};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};
use rustix::path::Arg;

pub(super) fn relative(path: &AbsPath) -> &Path {
    match path.as_path().strip_prefix("/") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest,
        _ => Path::new("."),
    }
}

/// Opens a path without following links, also those that are created meanwhile.
pub(crate) fn open_without_links(path: impl Arg, flags: OFlags) -> io::Result<OwnedFd> {
    let how = ResolveFlags::NO_SYMLINKS;
    let flags = flags | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), how)?)
}

/// What is at a path of the new tree, without following any link.
pub(super) fn find(root: BorrowedFd<'_>, path: &AbsPath) -> io::Result<OwnedFd> {
    find_below(root, relative(path))
}

/// The same by a path that begins at any directory.
pub(super) fn find_below(dir: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    find_with(dir, path, OFlags::empty())
}

fn find_with(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    Ok(rustix::fs::openat2(dir, path, flags, Mode::empty(), how)?)
}

/// The parent directory of a path of the new tree, created where there is none, and its last name.
/// A link on the way would lead into the host's tree.
pub(super) fn way<'a>(root: BorrowedFd<'_>, path: &'a AbsPath) -> io::Result<(OwnedFd, &'a Path)> {
    let name = path.as_path().file_name().map(Path::new).ok_or(io::ErrorKind::InvalidInput)?;
    let above = path.parent();
    match find_with(root, relative(&above), OFlags::DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (parent, last) = way(root, &above)?;
            match rustix::fs::mkdirat(&parent, last, Mode::from(0o755)) {
                // The other thread may be on the same way.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok((find_with(parent.as_fd(), last, OFlags::DIRECTORY)?, name))
        }
        found => Ok((found?, name)),
    }
}

pub(super) fn clone_tree(at: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(rustix::mount::open_tree(at, path, flags)?)
}

/// A copy of the mount at an open path.
pub(crate) fn clone_tree_of(place: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(rustix::mount::open_tree(place, "", flags)?)
}

pub(super) fn attach(tree: BorrowedFd<'_>, at: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", at, path, flags)?)
}

pub(crate) fn attach_to(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", place, "", flags)?)
}

pub(super) fn mounted(context: &OwnedFd, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    Ok(rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A new file system in memory that holds this many bytes.
pub(super) fn new_tmpfs(mode: &str, size: u64) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, "mode", mode)?;
    rustix::mount::fsconfig_set_string(&context, "size", size.to_string())?;
    // The kernel's own memory for a file is about a kilobyte, also for an empty one.
    let files = (size / BYTES_PER_FILE).max(FEWEST_FILES);
    rustix::mount::fsconfig_set_string(&context, "nr_inodes", files.to_string())?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// One file for each of so many bytes that a private file system holds.
const BYTES_PER_FILE: u64 = 16 << 10;
/// As many files as any private file system holds.
const FEWEST_FILES: u64 = 4096;
/// Room for what has no content.
pub(super) const STUBS: u64 = 1 << 20;

/// How much the private directories of a run hold if no limit says it.
pub(super) fn private_room(asked: Option<ByteSize>) -> u64 {
    const MOST: u64 = 8 << 30;
    // Zero means no limit to the kernel, and the run's own texts need some room.
    asked.map_or_else(|| MOST.min(memory() / 2), |size| size.0).max(STUBS)
}

/// The memory of this machine.
fn memory() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(u64::from(system.mem_unit))
}

/// Something empty without permissions, to mount over what must not be read.
pub(crate) fn closed_stub(directory: bool) -> io::Result<OwnedFd> {
    if directory {
        return new_tmpfs("0000", STUBS);
    }
    // Whoever creates the file may have no capability to enter any directory.
    let store = new_tmpfs("0700", STUBS)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&store, "x", flags, Mode::empty())?;
    clone_tree(store.as_fd(), Path::new("x"))
}

pub(super) fn tripwire(device: &OwnedFd, (uid, gid): (u32, u32)) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let settings = [
        ("source", "ringwall".to_owned()),
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", "40000".to_owned()),
        ("user_id", uid.to_string()),
        ("group_id", gid.to_string()),
    ];
    for (key, value) in settings {
        rustix::mount::fsconfig_set_string(&context, key, value)?;
    }
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// A view of the processes of this process namespace, which nothing can be written to.
pub(super) fn processes() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(
        &context,
        MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )
}

pub(super) fn terminals() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(&context, "newinstance")?;
    rustix::mount::fsconfig_set_string(&context, "ptmxmode", "0666")?;
    rustix::mount::fsconfig_set_string(&context, "mode", "0620")?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_never_leads_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("in"), place.path().join("out"));
        for dir in [&inside, &outside] {
            std::fs::create_dir(dir).unwrap();
        }
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        std::os::unix::fs::symlink("../out", inside.join("up")).unwrap();
        let root = open_without_links(inside.as_path(), OFlags::PATH).unwrap();
        let at = |path: &str| AbsPath::lexical(Path::new(path)).unwrap();

        for path in ["/link/x", "/link/a/b", "/up/x", "/up/a/b"] {
            way(root.as_fd(), &at(path)).unwrap_err();
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);

        let path = at("/a/b/c");
        let (parent, name) = way(root.as_fd(), &path).unwrap();
        rustix::fs::mkdirat(&parent, name, Mode::RWXU).unwrap();
        assert!(inside.join("a/b/c").is_dir());
    }
}
