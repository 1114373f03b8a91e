//! Calls on names that a run cannot write, by programs that unpack many files: see
//! [`crate::supervisor::diverted`].

use model::AbsPath;

use super::{CONTINUE, Judged, Watcher, errno};
use crate::Operation;
use crate::observe::syscalls::Call;

impl Watcher<'_> {
    /// What becomes of a call on such a name. `None` if it is like any other: whoever writes what is
    /// there, or does not ask for a new file, does not unpack anything.
    pub(super) fn divert(
        &mut self,
        call: &Call,
        path: &AbsPath,
        to: Option<&AbsPath>,
    ) -> Option<Judged> {
        if !call.operation.writes() {
            return None;
        }
        if call.operation == Operation::Rename && is_index(path, to) {
            self.monitor.settle(self.diverted);
            return None;
        }
        let diverted = self.diverted.has(path);
        if !diverted && !self.monitor.diverts(path) {
            return None;
        }
        let found = path.as_path().symlink_metadata().ok();
        let is_directory = found.as_ref().is_some_and(std::fs::Metadata::is_dir);
        let there = found.is_some() && !self.diverted.has_removed(path);
        let exclusive = (libc::O_CREAT | libc::O_EXCL).cast_unsigned();
        let unpacks = call.flags & exclusive == exclusive;
        match call.operation {
            Operation::Create if unpacks && (diverted || there) => Some(errno(libc::EEXIST)),
            Operation::Create if unpacks && self.diverted.has_room() => {
                Some(Judged::Divert(path.clone()))
            }
            Operation::Create | Operation::Write | Operation::Truncate if diverted => {
                Some(Judged::DivertedAgain(path.clone(), call.flags))
            }
            Operation::MakeDirectory if there => Some(errno(libc::EEXIST)),
            // An empty directory does nothing. Where none can be made, it comes with its files.
            Operation::MakeDirectory if self.plan.allows(path, true) => Some(CONTINUE),
            Operation::MakeDirectory => Some(Judged::Done),
            Operation::Remove if diverted => {
                self.diverted.forget(path);
                Some(Judged::Done)
            }
            Operation::Remove if is_directory && is_full(path) => Some(errno(libc::ENOTEMPTY)),
            Operation::Remove
                if there
                    && !is_directory
                    && self.diverted.has_room()
                    && self.monitor.is_being_checked_out(path) =>
            {
                self.diverted.removed.insert(path.clone());
                Some(Judged::Done)
            }
            Operation::ChangeMode
            | Operation::ChangeOwner
            | Operation::ChangeTimes
            | Operation::ChangeAttributes
                if diverted =>
            {
                Some(Judged::Done)
            }
            // Of a directory that the run made: whatever is in it is judged by itself.
            Operation::ChangeMode
            | Operation::ChangeOwner
            | Operation::ChangeTimes
            | Operation::ChangeAttributes
                if is_directory && self.plan.allows(path, true) =>
            {
                Some(CONTINUE)
            }
            _ => None,
        }
    }
}

/// Whether git puts its new index in place, after all files of a checkout.
fn is_index(from: &AbsPath, to: Option<&AbsPath>) -> bool {
    from.as_path().ends_with("index.lock") && to.is_some_and(|to| to.as_path().ends_with("index"))
}

fn is_full(directory: &AbsPath) -> bool {
    directory.as_path().read_dir().is_ok_and(|mut entries| entries.next().is_some())
}
