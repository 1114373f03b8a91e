//! [`Streams`]: the modes of standard input, output and error, which a run shares with its caller.

use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::stdio::{stderr, stdin, stdout};

/// The status flags of the streams as they were. A program that sets `O_NONBLOCK` sets it for everyone
/// who has the same open file, such as the shell that started the run.
#[derive(Debug)]
pub(crate) struct Streams([Option<OFlags>; 3]);

/// A stream may be closed.
fn streams() -> [BorrowedFd<'static>; 3] {
    [stdin(), stdout(), stderr()]
}

impl Streams {
    /// Remembers the flags.
    pub(crate) fn remember() -> Self {
        Self(streams().map(|stream| fcntl_getfl(stream).ok()))
    }

    /// Sets those flags again that are different now.
    pub(crate) fn restore(&self) {
        for (stream, before) in streams().into_iter().zip(self.0) {
            if let Some(before) = before
                && fcntl_getfl(stream).is_ok_and(|now| now != before)
            {
                let _ = fcntl_setfl(stream, before);
            }
        }
    }
}
