//! [`refusal`]: what the user could not do outside of the sandbox either.
//!
//! Asks the kernel with the rights of the invoking user, who is the user of this process. Nothing is
//! allowed because of the answer: it only decides with which error a denied call fails.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::AbsPath;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;
use sandbox::Operation;

/// The error that the user would get outside. `None` if the user could do it, and where that cannot be
/// determined.
pub(crate) fn refusal(operation: Operation, path: &AbsPath) -> Option<i32> {
    let errno = match operation {
        Operation::Look | Operation::LookUp => None,
        Operation::Read | Operation::List => denied(path, Access::READ_OK),
        Operation::Execute => denied(path, Access::EXEC_OK),
        Operation::Write | Operation::Truncate | Operation::ChangeAttributes
        // Connecting to a socket takes the right to write it.
        | Operation::Connect => denied(path, Access::WRITE_OK),
        Operation::Create => match denied(path, Access::WRITE_OK) {
            Some(Errno::NOENT) => entry(path),
            written => written,
        },
        Operation::MakeDirectory | Operation::MakeNode | Operation::SymbolicLink => {
            entry(path).map(|errno| if exists(path) { Errno::EXIST } else { errno })
        }
        Operation::Link | Operation::Rename | Operation::Remove => {
            entry(path).or_else(|| others_in_sticky(path))
        }
        Operation::ChangeMode | Operation::ChangeOwner => {
            read_only(path).or_else(|| not_owned(path).then_some(Errno::PERM))
        }
        // Whoever may write a file may set its times to now.
        Operation::ChangeTimes => {
            denied(path, Access::WRITE_OK).filter(|errno| *errno != Errno::ACCESS || not_owned(path))
        }
    };
    errno.map(Errno::raw_os_error)
}

fn denied(path: &AbsPath, access: Access) -> Option<Errno> {
    rustix::fs::accessat(CWD, path.as_path(), access, AtFlags::EACCESS).err()
}

/// Why no entry can be added to the directory of a path, or taken from it.
fn entry(path: &AbsPath) -> Option<Errno> {
    denied(&path.parent(), Access::WRITE_OK | Access::EXEC_OK)
}

fn exists(path: &AbsPath) -> bool {
    path.as_path().symlink_metadata().is_ok()
}

fn read_only(path: &AbsPath) -> Option<Errno> {
    denied(path, Access::WRITE_OK).filter(|errno| *errno != Errno::ACCESS)
}

/// Whether something exists that belongs to someone else. Root owns everything.
fn not_owned(path: &AbsPath) -> bool {
    owner(path.as_path()).is_some_and(|owner| !is_user(owner))
}

/// In a directory such as `/tmp`, only the owner of a file removes or renames it.
fn others_in_sticky(path: &AbsPath) -> Option<Errno> {
    let parent = path.parent();
    let directory = parent.as_path().symlink_metadata().ok()?;
    let sticky = directory.mode() & 0o1000 != 0 && !is_user(directory.uid());
    (sticky && not_owned(path)).then_some(Errno::PERM)
}

fn owner(path: &Path) -> Option<u32> {
    path.symlink_metadata().ok().map(|found| found.uid())
}

fn is_user(uid: u32) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == uid
}
