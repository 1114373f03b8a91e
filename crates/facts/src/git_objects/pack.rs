//! [`Pack`]: many objects in one file, with an index beside it.
//!
//! What is read here is not checked; [`ObjectStore::read`] does that.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::{Kind, LARGEST, Object, ObjectId, ObjectStore, inflate};

/// How many objects in a row may be differences to another one. Git makes 50, or 4095 at most.
const DEEPEST: usize = 4096;
/// The most packs of one directory that are read.
const MOST_PACKS: usize = 1000;

const MAGIC: &[u8] = b"\xfftOc\0\0\0\x02";
/// The index begins with its version and, for each first byte of an id, how many ids come before the
/// next one.
const FIRST_BYTES: u64 = 8;
const IDS: u64 = FIRST_BYTES + 256 * 4;

/// A pack and its index.
pub(super) struct Pack {
    index: File,
    objects: File,
    count: u64,
}

/// Where an object is, or how it is made of another one.
enum Stored {
    Whole(Kind, Vec<u8>),
    /// A difference to the object at an offset.
    At(u64, Vec<u8>),
    /// A difference to the object with an id.
    Of(ObjectId, Vec<u8>),
}

impl Pack {
    /// The packs in a directory.
    pub(super) fn all(dir: &Path) -> Vec<Self> {
        let entries = dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let indexes = entries.filter(|path| path.extension().is_some_and(|it| it == "idx"));
        indexes.filter_map(|index| Self::open(&index)).take(MOST_PACKS).collect()
    }

    fn open(path: &Path) -> Option<Self> {
        let (index, objects) = (regular(path)?, regular(&path.with_extension("pack"))?);
        let mut magic = [0; 8];
        index.read_exact_at(&mut magic, 0).ok()?;
        let mut pack = Self { index, objects, count: 0 };
        pack.count = u64::from(pack.number(FIRST_BYTES + 255 * 4)?);
        (magic == MAGIC).then_some(pack)
    }

    pub(super) fn read(&self, id: ObjectId, store: &ObjectStore) -> Option<Object> {
        let mut at = self.offset(id)?;
        let mut differences = Vec::new();
        let mut size = 0_usize;
        let (kind, mut content) = loop {
            let (base, difference) = match self.stored(at)? {
                Stored::Whole(kind, content) => break (kind, content),
                Stored::At(base, difference) => (Ok(base), difference),
                Stored::Of(base, difference) => (Err(base), difference),
            };
            size = size.saturating_add(difference.len());
            differences.push(difference);
            if differences.len() > DEEPEST || size > LARGEST {
                return None;
            }
            at = match base {
                Ok(base) if base < at => base,
                Ok(_) => return None,
                Err(id) => match self.offset(id).filter(|base| *base != at) {
                    Some(base) => base,
                    // In another pack, or alone. It is whole there, or it is not found.
                    None => break super::loose_base(store, id)?,
                },
            };
        };
        for difference in differences.iter().rev() {
            content = apply(&content, difference)?;
        }
        Some(Object { kind, content })
    }

    /// Where an object is in the pack.
    fn offset(&self, id: ObjectId) -> Option<u64> {
        let first = u64::from(id.0[0]);
        let before = |first: u64| self.number(FIRST_BYTES + first * 4).map(u64::from);
        let mut low = if first == 0 { 0 } else { before(first - 1)? };
        let mut high = before(first)?.min(self.count);
        while low < high {
            let middle = low.midpoint(high);
            let mut found = [0; 20];
            self.index.read_exact_at(&mut found, IDS + middle * 20).ok()?;
            match found.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset_of(middle),
            }
        }
        None
    }

    fn offset_of(&self, row: u64) -> Option<u64> {
        // After the ids come checksums of four bytes, then offsets, then those that need more room.
        let offsets = IDS + self.count * 24;
        let offset = self.number(offsets + row * 4)?;
        let Some(large) = offset.checked_sub(1 << 31) else { return Some(offset.into()) };
        let mut bytes = [0; 8];
        let at = offsets + self.count * 4 + u64::from(large) * 8;
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    fn number(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    fn stored(&self, at: u64) -> Option<Stored> {
        let mut heading = [0; 64];
        let length = self.objects.read_at(&mut heading, at).ok()?;
        let mut bytes = heading.get(..length)?.iter().copied();
        let mut used = 0;
        let mut next = || {
            used += 1;
            bytes.next()
        };
        let first = next()?;
        let (mut size, mut shift, mut byte) = (usize::from(first & 15), 4, first);
        while byte & 0x80 != 0 {
            byte = next()?;
            size |= usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 32)?;
            shift += 7;
        }
        let kind = (first >> 4) & 7;
        let whole = match kind {
            1 => Some(Kind::Commit),
            2 => Some(Kind::Tree),
            3 => Some(Kind::Blob),
            4 => Some(Kind::Tag),
            _ => None,
        };
        let base = match kind {
            6 => {
                let mut byte = next()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = next()?;
                    back = back.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
                }
                Some(Ok(at.checked_sub(back)?))
            }
            7 => {
                let id: Vec<_> = (0..20).map_while(|_| next()).collect();
                Some(Err(ObjectId::from_bytes(&id)?))
            }
            _ => None,
        };
        if size > LARGEST {
            return None;
        }
        // What cannot be compressed takes a little more room than before.
        let mut stored = vec![0; size + size / 1000 + 128];
        let length = self.objects.read_at(&mut stored, at + used).ok()?;
        let content = inflate(stored.get(..length)?, size)?;
        match (whole, base) {
            (Some(kind), _) => Some(Stored::Whole(kind, content)),
            (_, Some(Ok(base))) => Some(Stored::At(base, content)),
            (_, Some(Err(base))) => Some(Stored::Of(base, content)),
            _ => None,
        }
    }
}

/// Opens a regular file for reading, without waiting for anything else.
fn regular(path: &Path) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Makes an object of another one and a difference.
fn apply(base: &[u8], difference: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = difference.iter().copied();
    let (from, to) = (length(&mut bytes)?, length(&mut bytes)?);
    if from != base.len() || to > LARGEST {
        return None;
    }
    let mut made = Vec::with_capacity(to);
    while let Some(order) = bytes.next() {
        if order & 0x80 == 0 {
            made.extend((0..order).map_while(|_| bytes.next()));
        } else {
            let mut part = |bits: std::ops::Range<u8>| {
                bits.clone().try_fold(0_usize, |number, bit| {
                    let byte = if order & (1 << bit) == 0 { 0 } else { bytes.next()? };
                    Some(number | usize::from(byte) << (8 * (bit - bits.start)))
                })
            };
            let (start, size) = (part(0..4)?, part(4..7)?);
            let size = if size == 0 { 0x10000 } else { size };
            made.extend_from_slice(base.get(start..start.checked_add(size)?)?);
        }
        if made.len() > to {
            return None;
        }
    }
    (made.len() == to).then_some(made)
}

fn length(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let (mut length, mut shift) = (0_usize, 0);
    loop {
        let byte = bytes.next()?;
        length |= usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 63)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
}
