//! What a request tries to do, in the words of [`Operation`].
//!
//! Reads the request and the node table; neither asks nor answers.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::abi::{field, opcode, valid};
use super::nodes::Nodes;
use super::wire::Request;
use super::{Fault, Operation};

/// The kernel opens a file to run it with this flag, which no program can give.
const FMODE_EXEC: u32 = 0x20;

/// What is tried, and on which path. A rename or a link touches a second one.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) operation: Operation,
    pub(super) path: PathBuf,
    pub(super) second: Option<PathBuf>,
}

/// What this request tries. None: nothing that matters.
pub(super) fn tried(request: &Request<'_>, nodes: &Nodes) -> Result<Option<Tried>, Fault> {
    let here = |operation| one(operation, path_of(request.node, nodes)?);
    let name = |operation, at| one(operation, child(request.node, request.name_at(at)?, nodes)?);
    match request.opcode {
        opcode::OPEN => here(opening(request.u32_at(field::OPEN_FLAGS)?)),
        opcode::SETATTR => here(changing(request.u32_at(field::SETATTR_VALID)?)),
        opcode::SETXATTR | opcode::REMOVEXATTR => here(Operation::ChangeAttributes),
        // A nameless file: the directory is all the path there is.
        opcode::TMPFILE => here(Operation::Create),
        opcode::CREATE => name(Operation::Create, field::CREATE_LENGTH),
        opcode::MKNOD => name(making(request.u32_at(field::MKNOD_MODE)?), field::MKNOD_LENGTH),
        opcode::MKDIR => name(Operation::MakeDirectory, field::MKDIR_LENGTH),
        opcode::SYMLINK => name(Operation::SymbolicLink, 0),
        opcode::UNLINK | opcode::RMDIR => name(Operation::Remove, 0),
        opcode::LINK => {
            let old = path_of(request.u64_at(field::LINK_OLD_NODE)?, nodes)?;
            let new = child(request.node, request.name_at(field::LINK_LENGTH)?, nodes)?;
            two(Operation::Link, old, new)
        }
        opcode::RENAME => rename(request, field::RENAME_LENGTH, nodes),
        opcode::RENAME2 => rename(request, field::RENAME2_LENGTH, nodes),
        _ => Ok(None),
    }
}

fn rename(request: &Request<'_>, at: usize, nodes: &Nodes) -> Result<Option<Tried>, Fault> {
    let new_parent = request.u64_at(field::RENAME_NEW_PARENT)?;
    let (old, new) = request.two_names_at(at)?;
    two(Operation::Rename, child(request.node, old, nodes)?, child(new_parent, new, nodes)?)
}

#[expect(clippy::unnecessary_wraps, reason = "the arms of `tried` read as one table")]
fn one(operation: Operation, path: PathBuf) -> Result<Option<Tried>, Fault> {
    Ok(Some(Tried { operation, path, second: None }))
}

#[expect(clippy::unnecessary_wraps, reason = "the arms of `tried` read as one table")]
fn two(operation: Operation, path: PathBuf, second: PathBuf) -> Result<Option<Tried>, Fault> {
    Ok(Some(Tried { operation, path, second: Some(second) }))
}

fn path_of(node: u64, nodes: &Nodes) -> Result<PathBuf, Fault> {
    nodes.get(node).map(|(path, _)| path.to_owned()).ok_or(Fault::Errno(libc::ESTALE))
}

fn child(parent: u64, name: &OsStr, nodes: &Nodes) -> Result<PathBuf, Fault> {
    nodes.child(parent, name).ok_or(Fault::Errno(libc::ESTALE))
}

fn opening(flags: u32) -> Operation {
    let has = |bits: i32| flags & bits.cast_unsigned() != 0;
    if has(libc::O_ACCMODE) || has(libc::O_TRUNC) {
        Operation::Write
    } else if flags & FMODE_EXEC != 0 {
        Operation::Execute
    } else {
        Operation::Read
    }
}

/// The strongest of what changes: the kernel sends new times along with most other changes.
fn changing(attributes: u32) -> Operation {
    if attributes & valid::SIZE != 0 {
        Operation::Truncate
    } else if attributes & (valid::UID | valid::GID) != 0 {
        Operation::ChangeOwner
    } else if attributes & valid::MODE != 0 {
        Operation::ChangeMode
    } else {
        Operation::ChangeTimes
    }
}

fn making(mode: u32) -> Operation {
    match mode & libc::S_IFMT {
        libc::S_IFREG | 0 => Operation::Create,
        _ => Operation::MakeNode,
    }
}
