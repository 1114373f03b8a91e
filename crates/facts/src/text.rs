//! Small text files, read without trusting that the path is a regular file.

use std::io::Read;
use std::path::Path;

use model::FileText;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Settings and configuration are small. Anything larger is something else.
pub const LARGEST_TEXT: usize = 1 << 20;

/// Reads a small regular file. A pipe or device in its place is not waited for.
pub fn read_small(path: &Path) -> FileText {
    match read(path) {
        Ok(text) => FileText::Text(text),
        Err(Problem::Missing) => FileText::Missing,
        Err(Problem::Unreadable(why)) => FileText::Unreadable(why),
    }
}

enum Problem {
    Missing,
    Unreadable(String),
}

fn read(path: &Path) -> Result<String, Problem> {
    let bytes = open(path, LARGEST_TEXT)?;
    String::from_utf8(bytes).map_err(|_| Problem::Unreadable("it is not UTF-8 text".into()))
}

/// Reads a regular file of at most so many bytes, whatever is in it. The error says why it cannot be
/// read; there is none for a file that does not exist.
pub fn read_bytes(path: &Path, largest: usize) -> Result<Vec<u8>, Option<String>> {
    open(path, largest).map_err(|problem| match problem {
        Problem::Missing => None,
        Problem::Unreadable(why) => Some(why),
    })
}

fn open(path: &Path, largest: usize) -> Result<Vec<u8>, Problem> {
    let wrong = |why: &str| Problem::Unreadable(why.into());
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT | Errno::NOTDIR => Problem::Missing,
        errno => wrong(&errno.to_string()),
    })?;
    let stat = rustix::fs::fstat(&descriptor).map_err(|errno| wrong(&errno.to_string()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(wrong("it is not a regular file"));
    }
    let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(size.min(1 << 16));
    std::fs::File::from(descriptor)
        .take(largest as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(&error.to_string()))?;
    if bytes.len() > largest {
        return Err(wrong(&format!("it is larger than {} MiB", largest >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_text_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("text"), "hello").unwrap();
        std::fs::write(at("binary"), [0xff, 0xfe]).unwrap();
        std::fs::write(at("large"), vec![b'a'; LARGEST_TEXT + 1]).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(read_small(&at("text")), FileText::Text("hello".into()));
        assert_eq!(read_small(&at("none")), FileText::Missing);
        for name in ["binary", "large", "pipe", "."] {
            assert!(matches!(read_small(&at(name)), FileText::Unreadable(_)), "{name}");
        }
    }
}
