//! [`Identity`]: which workspace a layer belongs to, and whether what is in it is whole.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use model::AbsPath;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::lossless;

const FILE: &str = "workspace.json";
const VERSION: u32 = 1;
/// A file that is larger was not written here.
const LARGEST: u64 = 64 << 10;

/// How long the kernel may take to write to the disk what no one asked it to.
const UNWRITTEN: Duration = Duration::from_mins(2);

/// A workspace, and the boot of the machine in which it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    version: u32,
    #[serde(with = "lossless")]
    pub(super) workspace: PathBuf,
    /// The directory there: one that replaces it is another workspace.
    inode: u64,
    born: (i64, u32),
    boot: String,
    #[serde(skip)]
    pub(super) used: Option<SystemTime>,
}

/// The name of a workspace's layer.
pub(super) fn key(workspace: &AbsPath) -> String {
    let digest = Sha256::digest(workspace.as_path().as_os_str().as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Identity {
    /// What it is now.
    pub(super) fn of(workspace: &AbsPath) -> Result<Self, Errno> {
        let mask = StatxFlags::INO | StatxFlags::BTIME;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statx(rustix::fs::CWD, workspace.as_path(), flags, mask)?;
        let born = if found.stx_mask & StatxFlags::BTIME.bits() == 0 {
            (0, 0)
        } else {
            (found.stx_btime.tv_sec, found.stx_btime.tv_nsec)
        };
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Ok(Self {
            version: VERSION,
            workspace: workspace.as_path().to_path_buf(),
            inode: found.stx_ino,
            born,
            boot: boot.trim().to_owned(),
            used: None,
        })
    }

    /// What a layer says.
    pub(super) fn read(dir: BorrowedFd<'_>) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, FILE, flags, Mode::empty()).ok()?;
        let file = std::fs::File::from(file);
        let used = file.metadata().ok().filter(std::fs::Metadata::is_file)?.modified().ok();
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text).ok()?;
        let identity: Self = serde_json::from_slice(&text).ok()?;
        Some(Self { used, ..identity })
    }

    /// Whether a layer that says this belongs to the workspace as it is now.
    ///
    /// Nothing is written through to the disk for a layer. If the machine was restarted shortly after
    /// the last use, files in it may be cut off, and it is not used any more.
    pub(super) fn still_holds(&self, now: &Self) -> bool {
        let same = |one: &Self| (one.version, one.workspace.clone(), one.inode, one.born);
        same(self) == same(now) && (self.boot == now.boot || self.is_written())
    }

    fn is_written(&self) -> bool {
        let uptime = rustix::system::sysinfo().uptime.try_into().unwrap_or_default();
        let booted = SystemTime::now().checked_sub(Duration::from_secs(uptime));
        let written = self.used.and_then(|used| used.checked_add(UNWRITTEN));
        written.zip(booted).is_some_and(|(written, booted)| written < booted)
    }

    /// Writes it into a layer, and notes that the layer is used now.
    pub(super) fn write(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        if Self::read(dir).is_some_and(|before| Self { used: None, ..before } == *self) {
            touch(dir);
            return Ok(());
        }
        let text = serde_json::to_vec(self).map_err(|_| Errno::INVAL)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, FILE, flags, Mode::RUSR | Mode::WUSR)?;
        let written = std::fs::File::from(file).write_all(&text);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// Notes that a layer is used now.
pub(super) fn touch(dir: BorrowedFd<'_>) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let _ = rustix::fs::utimensat(dir, FILE, &times, AtFlags::SYMLINK_NOFOLLOW);
}
