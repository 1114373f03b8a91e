//! A directory that leads to granted paths, listed page by page.
//!
//! An offset is the place of a line in the list: `.`, `..`, then the names in the order in which
//! the contents gives them, which is the same for the whole run.

use std::ffi::OsString;
use std::path::Path;

use super::abi::{ROOT, UNKNOWN_INODE, field, opcode};
use super::nodes::Kind;
use super::wire::{Line, Request, is_listed};
use super::{Contents, Fault, Outcome, Tripwire, kind_of};

/// The longest page. The kernel asks for one memory page, or for as much as the program does.
const LONGEST_PAGE: usize = 64 << 10;

impl Tripwire {
    /// One page of a listing.
    pub(super) fn list(
        &mut self,
        request: &Request<'_>,
        directory: &Path,
        contents: &mut impl Contents,
    ) -> Result<Outcome, Fault> {
        let page = Page::asked(request)?;
        let names = contents.names(directory).into_iter().filter(|(name, _)| is_listed(name));
        let names = names.filter_map(|(name, seen)| {
            let kind = kind_of(seen, &directory.join(&name), contents).ok()?;
            Some((name, kind))
        });
        let dots = [(OsString::from("."), Kind::Way), (OsString::from(".."), Kind::Way)];
        for ((name, kind), next) in dots.into_iter().chain(names).zip(1..).skip(page.skip) {
            let line = Line { inode: UNKNOWN_INODE, next, format: kind.format(), name: &name };
            let length = if page.plus { line.length_with_entry() } else { line.length() };
            if self.reply.len() + length > page.size {
                // An empty page would mean the end of the list.
                let none = self.reply.len() == 0;
                return if none { Err(Fault::Errno(libc::EINVAL)) } else { Ok(Outcome::Reply) };
            }
            let inode = match next {
                1 => self.dots(&page, request.node),
                2 => self.dots(&page, self.above(directory)),
                _ => self.name(&page, &directory.join(&name), kind),
            };
            self.reply.line(&Line { inode, ..line });
        }
        Ok(Outcome::Reply)
    }

    /// The kernel knows these two itself and counts no lookup for them.
    fn dots(&mut self, page: &Page, number: u64) -> u64 {
        if page.plus {
            self.reply.no_entry();
        }
        number
    }

    /// What is planned is sent at once, so that the kernel need not look it up name by name. What
    /// is not planned is asked for each time anyway; sending it here would only cost memory.
    fn name(&mut self, page: &Page, path: &Path, kind: Kind) -> u64 {
        if !page.plus {
            return self.nodes.number(path).unwrap_or(UNKNOWN_INODE);
        }
        let planned = Some(kind).filter(|kind| kind.is_planned());
        let number = planned.and_then(|kind| self.nodes.remember_listed(path, kind));
        match number {
            Some(number) => self.reply.entry(&self.owner.entry(number, kind)),
            None => self.reply.no_entry(),
        }
        number.or_else(|| self.nodes.number(path)).unwrap_or(UNKNOWN_INODE)
    }

    fn above(&self, directory: &Path) -> u64 {
        directory.parent().and_then(|above| self.nodes.number(above)).unwrap_or(ROOT)
    }
}

/// Which part of the list is asked for, and in which form.
struct Page {
    skip: usize,
    size: usize,
    /// Whether each line comes with what a lookup would say.
    plus: bool,
}

impl Page {
    fn asked(request: &Request<'_>) -> Result<Self, Fault> {
        let skip = usize::try_from(request.u64_at(field::READ_OFFSET)?).unwrap_or(usize::MAX);
        let size = usize::try_from(request.u32_at(field::READ_SIZE)?).unwrap_or(LONGEST_PAGE);
        let plus = request.opcode == opcode::READDIRPLUS;
        Ok(Self { skip, size: size.min(LONGEST_PAGE), plus })
    }
}
