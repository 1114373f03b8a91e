//! Any bytes are a request of the kernel, or malformed: every one gets an answer, and no memory.

#![no_main]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use sandbox::tripwire::{Contents, Seen, Tripwire};
use sandbox::{Attempt, Ruling};

struct Ground;

impl Contents for Ground {
    fn look(&mut self, path: &Path, _pid: u32) -> Seen {
        match path.as_os_str().len() % 5 {
            0 => Seen::Way,
            1 => Seen::Directory,
            2 => Seen::File,
            3 => Seen::Link,
            _ => Seen::Absent(2),
        }
    }

    fn names(&mut self, _path: &Path) -> Vec<(OsString, Seen)> {
        vec![("a".into(), Seen::Way), ("b".into(), Seen::File)]
    }

    fn target(&mut self, _path: &Path) -> Option<PathBuf> {
        Some("/somewhere".into())
    }

    fn attempt(&mut self, attempt: Attempt) -> Ruling {
        assert!(attempt.path.is_absolute(), "{:?}", attempt.path);
        Ruling::Errno(13)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut tripwire = Tripwire::new(1000, 1000);
    // Several requests, each with its length in front, as a kernel would write them.
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (request, next) = after.split_at(length);
        let _ = tripwire.serve(request, &mut Ground);
        rest = next;
    }
});
