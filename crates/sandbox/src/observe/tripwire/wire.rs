//! The bytes of the FUSE protocol: requests taken apart, replies put together.
//!
//! Trusts no length it reads. What a request means is not known here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::Malformed;
use super::abi::field;

const REQUEST_OPCODE: usize = 4;
const REQUEST_UNIQUE: usize = 8;
const REQUEST_NODE: usize = 16;
const REQUEST_PID: usize = 32;
const REQUEST_HEADER: usize = 40;

const REPLY_HEADER: usize = 16;
const ENTRY_LENGTH: usize = 128;
const DIRENT_LENGTH: usize = 24;

/// What Linux file systems allow, and `getdents` callers reckon with.
const LONGEST_NAME: usize = 255;

/// One request of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) opcode: u32,
    pub(super) unique: u64,
    pub(super) node: u64,
    pub(super) pid: u32,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header = Malformed::Header(bytes.len());
        let body = bytes.get(REQUEST_HEADER..).ok_or(header)?;
        let length = u32_at(bytes, 0).ok_or(header)?;
        if usize::try_from(length) != Ok(bytes.len()) {
            return Err(Malformed::Length { said: length, got: bytes.len() });
        }
        Ok(Self {
            opcode: u32_at(bytes, REQUEST_OPCODE).ok_or(header)?,
            unique: u64_at(bytes, REQUEST_UNIQUE).ok_or(header)?,
            node: u64_at(bytes, REQUEST_NODE).ok_or(header)?,
            pid: u32_at(bytes, REQUEST_PID).ok_or(header)?,
            body,
        })
    }

    pub(super) fn u32_at(&self, at: usize) -> Result<u32, Malformed> {
        u32_at(self.body, at).ok_or(Malformed::Arguments(self.opcode))
    }

    pub(super) fn u64_at(&self, at: usize) -> Result<u64, Malformed> {
        u64_at(self.body, at).ok_or(Malformed::Arguments(self.opcode))
    }

    /// The name that begins at a place in the arguments.
    pub(super) fn name_at(&self, at: usize) -> Result<&'a OsStr, Malformed> {
        self.names_at(at).map(|(name, _)| name)
    }

    /// The name that begins at a place in the arguments, and the one after it.
    pub(super) fn two_names_at(&self, at: usize) -> Result<(&'a OsStr, &'a OsStr), Malformed> {
        let (first, next) = self.names_at(at)?;
        Ok((first, self.name_at(next)?))
    }

    /// The nodes of a `BATCH_FORGET`, each with the lookups to take back.
    pub(super) fn forgotten(&self) -> Result<impl Iterator<Item = (u64, u64)>, Malformed> {
        let malformed = Malformed::Arguments(self.opcode);
        let count = usize::try_from(self.u32_at(field::BATCH_FORGET_COUNT)?);
        let length = count.ok().and_then(|count| count.checked_mul(field::FORGET_ONE_LENGTH));
        let each = self.body.get(field::BATCH_FORGET_LENGTH..).zip(length);
        let each = each.and_then(|(each, length)| each.get(..length)).ok_or(malformed)?;
        Ok(each.chunks_exact(field::FORGET_ONE_LENGTH).filter_map(|one| {
            Some((u64_at(one, field::FORGET_ONE_NODE)?, u64_at(one, field::FORGET_ONE_LOOKUPS)?))
        }))
    }

    fn names_at(&self, at: usize) -> Result<(&'a OsStr, usize), Malformed> {
        let rest = self.body.get(at..).ok_or(Malformed::Arguments(self.opcode))?;
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or(Malformed::Arguments(self.opcode))?;
        let name = rest.get(..end).map(OsStr::from_bytes).filter(|name| is_name(name));
        Ok((name.ok_or(Malformed::Name(self.opcode))?, at + end + 1))
    }
}

/// Whether a directory can hold this name. A name that came from the kernel and a name that goes
/// to it are held to the same rule: one path, one node.
pub(super) fn is_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}

/// Whether a listing can show it.
pub(super) fn is_listed(name: &OsStr) -> bool {
    is_name(name) && name.len() <= LONGEST_NAME
}

/// The attributes of a node. Sizes and times of what is denied must not leak: they are not here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) node: u64,
    pub(super) size: u32,
    pub(super) mode: u32,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// What a name leads to, and for how many seconds the kernel need not ask again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) attributes: Attributes,
    pub(super) name_seconds: u64,
    pub(super) attribute_seconds: u64,
}

/// One line of a listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) inode: u64,
    /// Where the next line begins.
    pub(super) next: u64,
    /// The kind of file, as `st_mode` has it.
    pub(super) format: u32,
    pub(super) name: &'a OsStr,
}

impl Line<'_> {
    /// How many bytes it takes, padded.
    pub(super) fn length(&self) -> usize {
        (DIRENT_LENGTH + self.name.len()).next_multiple_of(8)
    }

    /// The same with an [`Entry`] before it.
    pub(super) fn length_with_entry(&self) -> usize {
        ENTRY_LENGTH + self.length()
    }
}

/// The reply in the making. One buffer serves for all.
#[derive(Debug, Default)]
pub(super) struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.zeros(REPLY_HEADER);
    }

    /// Its length, without the header.
    pub(super) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(REPLY_HEADER)
    }

    /// The whole reply to a request that was served.
    pub(super) fn finish(&mut self, unique: u64) -> &[u8] {
        self.header(unique, 0)
    }

    /// The whole reply to a request that was denied.
    pub(super) fn refuse(&mut self, unique: u64, errno: i32) -> &[u8] {
        self.bytes.truncate(REPLY_HEADER);
        self.header(unique, errno.saturating_neg())
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// `struct fuse_entry_out`.
    pub(super) fn entry(&mut self, entry: &Entry) {
        self.u64(entry.attributes.node);
        self.u64(0); // generation: numbers are never used twice
        self.u64(entry.name_seconds);
        self.u64(entry.attribute_seconds);
        self.zeros(8); // nanoseconds of both
        self.attributes(&entry.attributes);
    }

    /// `struct fuse_entry_out` of a name that is not there, and will not be for so long.
    pub(super) fn absent(&mut self, seconds: u64) {
        self.u64(0);
        self.u64(0);
        self.u64(seconds);
        self.zeros(ENTRY_LENGTH - 3 * 8);
    }

    /// `struct fuse_entry_out` of a name that the kernel shall look up itself.
    pub(super) fn no_entry(&mut self) {
        self.zeros(ENTRY_LENGTH);
    }

    /// `struct fuse_attr_out`.
    pub(super) fn attributes_for(&mut self, attributes: &Attributes, seconds: u64) {
        self.u64(seconds);
        self.zeros(8); // nanoseconds, padding
        self.attributes(attributes);
    }

    /// `struct fuse_dirent`.
    pub(super) fn line(&mut self, line: &Line<'_>) {
        let end = self.bytes.len() + line.length();
        self.u64(line.inode);
        self.u64(line.next);
        self.u32(u32::try_from(line.name.len()).unwrap_or(u32::MAX));
        self.u32(line.format >> 12); // `d_type`
        self.bytes(line.name.as_bytes());
        self.bytes.resize(end, 0);
    }

    /// `struct fuse_attr`.
    fn attributes(&mut self, attributes: &Attributes) {
        self.u64(attributes.node);
        self.u64(u64::from(attributes.size));
        self.zeros(8); // blocks
        self.zeros(3 * 8); // seconds of three times
        self.zeros(3 * 4); // nanoseconds of three times
        self.u32(attributes.mode);
        self.u32(attributes.links);
        self.u32(attributes.uid);
        self.u32(attributes.gid);
        self.zeros(4); // device
        self.zeros(4); // block size: the kernel's own
        self.zeros(4); // flags
    }

    fn header(&mut self, unique: u64, error: i32) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX).to_ne_bytes();
        let header = length.into_iter().chain(error.to_ne_bytes()).chain(unique.to_ne_bytes());
        for (slot, byte) in self.bytes.iter_mut().zip(header) {
            *slot = byte;
        }
        &self.bytes
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}
