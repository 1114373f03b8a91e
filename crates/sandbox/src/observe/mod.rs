//! How an attempt inside a run becomes known outside: requests to the tripwire file system and
//! seccomp notifications, and the program behind each.

pub(crate) mod looking;
pub(crate) mod notify;
pub(crate) mod planned_paths;
pub(crate) mod program;
pub mod syscalls;
pub mod tripwire;
pub(crate) mod tripwire_contents;
