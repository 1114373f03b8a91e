//! Where a path really leads: component by component, as the kernel walks it.
//!
//! A path need not exist. Links are followed as far as there are any, `..` goes to the parent of
//! the current directory of the walk, and what is missing is appended to the nearest existing
//! directory.
//! What cannot be walked is an error, and an error is never "inside".

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use model::{AbsPath, Unresolvable};
use rustix::io::Errno;

/// How many links the kernel follows in one path.
const MOST_LINKS: usize = 40;
/// The longest name that file systems store.
const NAME_MAX: usize = 255;
/// How many components are looked at for one path, over all its links: links with long targets multiply.
const MOST_STEPS: usize = 4096;
/// How much looking them up may cost, in components of the paths that are looked up.
const MOST_WORK: usize = 1 << 16;

/// Resolves paths, and caches what it has seen for one decision.
#[derive(Debug, Default)]
pub struct Resolver {
    // By text: comparing paths by component takes longer than another lookup.
    seen: HashMap<OsString, Result<Entry, Unresolvable>>,
}

#[derive(Debug, Clone)]
enum Entry {
    Missing,
    Link(PathBuf),
    /// A directory, a file or anything else that is not a link.
    Other,
}

/// What another process finds at a path where that differs from what we find: the target of the
/// link, or the error, as `readlink` reports them.
pub type Elsewhere<'a> = &'a dyn Fn(&AbsPath) -> Option<io::Result<PathBuf>>;

impl Resolver {
    /// Where an absolute path leads.
    pub fn resolve(&mut self, path: &Path) -> Result<AbsPath, Unresolvable> {
        self.resolve_for(path, &|_| None)
    }

    /// Where it leads for a process that sees some places differently.
    pub fn resolve_for(
        &mut self,
        path: &Path,
        elsewhere: Elsewhere<'_>,
    ) -> Result<AbsPath, Unresolvable> {
        self.walk(path, elsewhere).map(|walk| walk.at)
    }

    /// Where an absolute path leads, and the links on the way, each by its real path.
    pub fn follow(&mut self, path: &Path) -> Result<(AbsPath, Vec<AbsPath>), Unresolvable> {
        self.walk(path, &|_| None).map(|walk| (walk.at, walk.links))
    }

    fn walk(&mut self, path: &Path, elsewhere: Elsewhere<'_>) -> Result<Walk, Unresolvable> {
        let at = AbsPath::root();
        let mut walk =
            Walk { at, missing: false, todo: Vec::new(), links: Vec::new(), steps: 0, work: 0 };
        walk.push(path);
        if !path.is_absolute() {
            return Err(Unresolvable::Refused("the path is not absolute".into()));
        }
        while let Some(step) = walk.todo.pop() {
            walk.spend()?;
            match step {
                Step::Up => walk.up(elsewhere)?,
                Step::Name(name) => self.enter(&mut walk, name, elsewhere)?,
            }
        }
        Ok(walk)
    }

    fn enter(
        &mut self,
        walk: &mut Walk,
        name: OsString,
        elsewhere: Elsewhere<'_>,
    ) -> Result<(), Unresolvable> {
        if name.len() > NAME_MAX {
            return Err(Unresolvable::TooLong);
        }
        let next = walk.at.join(&name);
        if walk.missing {
            walk.at = next;
            return Ok(());
        }
        let theirs = elsewhere(&next);
        let here = theirs.is_none();
        let entry = match theirs {
            Some(found) => entry(found),
            None => self.entry(next.as_path()),
        };
        match entry? {
            // Links of /proc depend on the process that reads them, which is this one and not the
            // agent. They are not followed, so they count as outside, and what is behind them
            // cannot be known.
            Entry::Link(_) if here && next.as_path().starts_with("/proc") => {
                walk.missing = true;
                walk.at = next;
            }
            Entry::Link(target) => {
                walk.links.push(next);
                if walk.links.len() > MOST_LINKS {
                    return Err(Unresolvable::Loop);
                }
                if target.is_absolute() {
                    walk.at = AbsPath::root();
                }
                walk.push(&target);
            }
            Entry::Missing => {
                walk.missing = true;
                walk.at = next;
            }
            Entry::Other => walk.at = next,
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path) -> Result<Entry, Unresolvable> {
        if let Some(entry) = self.seen.get(path.as_os_str()) {
            return entry.clone();
        }
        let entry = look(path);
        self.seen.insert(path.into(), entry.clone());
        entry
    }
}

/// What is at a path whose parent is known to be free of links.
fn look(path: &Path) -> Result<Entry, Unresolvable> {
    entry(std::fs::read_link(path))
}

fn entry(link: io::Result<PathBuf>) -> Result<Entry, Unresolvable> {
    match link {
        Ok(target) => Ok(Entry::Link(target)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(Entry::Missing),
            ErrorKind::NotADirectory => Err(Unresolvable::NotADirectory),
            ErrorKind::InvalidFilename => Err(Unresolvable::TooLong),
            _ if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(Entry::Other),
            _ => Err(Unresolvable::Refused(error.to_string())),
        },
    }
}

struct Walk {
    at: AbsPath,
    missing: bool,
    /// Steps still to take, the next one last.
    todo: Vec<Step>,
    /// Those that were followed.
    links: Vec<AbsPath>,
    steps: usize,
    work: usize,
}

enum Step {
    Up,
    Name(OsString),
}

impl Walk {
    /// Counts a step. A path that takes too many gets the error of one with too many links.
    fn spend(&mut self) -> Result<(), Unresolvable> {
        // What is missing is not looked up.
        if self.missing {
            return Ok(());
        }
        // The kernel looks every path up from the root, a separator at a time.
        let depth = self.at.as_path().as_os_str().len() / 2;
        self.steps += 1;
        self.work += 1 + depth / 8;
        if self.steps > MOST_STEPS || self.work > MOST_WORK {
            return Err(Unresolvable::Loop);
        }
        Ok(())
    }

    fn push(&mut self, path: &Path) {
        let steps = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(Step::Name(name.to_owned())),
            Component::ParentDir => Some(Step::Up),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.todo.extend(steps);
    }

    fn up(&mut self, elsewhere: Elsewhere<'_>) -> Result<(), Unresolvable> {
        if self.missing {
            return Err(Unresolvable::ClimbsFromMissing);
        }
        if elsewhere(&self.at).is_some() {
            self.at = self.at.parent();
            return Ok(());
        }
        let here = std::fs::symlink_metadata(self.at.as_path())
            .map_err(|error| Unresolvable::Refused(error.to_string()))?;
        if !here.is_dir() {
            return Err(Unresolvable::NotADirectory);
        }
        self.at = self.at.parent();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn resolve(path: &Path) -> Result<AbsPath, Unresolvable> {
        Resolver::default().resolve(path)
    }

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        (dir, root)
    }

    #[test]
    fn missing_parts_hang_on_the_nearest_existing_directory() {
        let (_guard, root) = tree();
        symlink("/etc", root.join("out")).unwrap();
        let leads = |name: &str| resolve(&root.join(name)).unwrap().to_string();
        assert_eq!(leads("new/deep/file"), root.join("new/deep/file").display().to_string());
        assert_eq!(leads("out/new"), "/etc/new");
        symlink("not-there", root.join("dangling")).unwrap();
        assert_eq!(leads("dangling/x"), root.join("not-there/x").display().to_string());
    }

    #[test]
    fn parents_are_those_of_where_a_link_leads() {
        let (_guard, root) = tree();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a/b", root.join("link")).unwrap();
        let leads = resolve(&root.join("link/../x")).unwrap().to_string();
        assert_eq!(leads, root.join("a/x").display().to_string());
    }

    #[test]
    fn what_the_kernel_would_refuse_is_an_error() {
        let (_guard, root) = tree();
        std::fs::write(root.join("file"), "").unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        for (name, error) in [
            ("a", Unresolvable::Loop),
            ("a/x", Unresolvable::Loop),
            ("file/x", Unresolvable::NotADirectory),
            ("file/../x", Unresolvable::NotADirectory),
            ("missing/../x", Unresolvable::ClimbsFromMissing),
        ] {
            assert_eq!(resolve(&root.join(name)), Err(error), "{name}");
        }
        assert_eq!(resolve(&root.join("n".repeat(256))), Err(Unresolvable::TooLong));
        assert!(resolve(Path::new("relative")).is_err());
    }

    #[test]
    fn a_path_of_links_that_multiply_is_given_up_soon() {
        let (_guard, root) = tree();
        std::fs::create_dir(root.join("d")).unwrap();
        let long = "d/../".repeat(700);
        for number in 0..30 {
            symlink(format!("{long}{}", number + 1), root.join(number.to_string())).unwrap();
        }
        std::fs::write(root.join("30"), "").unwrap();
        let since = std::time::Instant::now();
        assert_eq!(resolve(&root.join("0")), Err(Unresolvable::Loop));
        assert!(since.elapsed() < std::time::Duration::from_secs(2));
        assert!(resolve(&root.join("29")).is_ok());
        assert!(resolve(&root.join("d/../".repeat(700)).join("30")).is_ok());
    }

    #[test]
    fn what_somebody_else_sees_counts_for_them() {
        let (_guard, root) = tree();
        std::fs::create_dir(root.join("dir")).unwrap();
        let dir = root.join("dir");
        let elsewhere =
            |path: &AbsPath| match path.as_path().strip_prefix("/private").ok()?.to_str()? {
                "link" => Some(Ok(dir.clone())),
                "up" => Some(Ok("link/..".into())),
                "gone" => Some(Err(ErrorKind::NotFound.into())),
                _ => Some(Err(Errno::INVAL.into())),
            };
        let leads = |path: &str| {
            Resolver::default().resolve_for(Path::new(path), &elsewhere).unwrap().to_string()
        };
        assert_eq!(leads("/private/link/new"), dir.join("new").display().to_string());
        assert_eq!(leads("/private/up/new"), root.join("new").display().to_string());
        assert_eq!(leads("/private/dir/../link"), dir.display().to_string());
        assert_eq!(leads("/private/gone/new"), "/private/gone/new");
    }

    #[test]
    fn links_of_proc_are_not_followed() {
        let here = std::env::current_dir().unwrap();
        for path in ["/proc/self/cwd/x", "/proc/self/root/etc/passwd", "/dev/fd/0"] {
            let leads = resolve(Path::new(path)).unwrap();
            assert!(leads.as_path().starts_with("/proc"), "{path} leads to {leads}");
            assert!(!leads.as_path().starts_with(&here));
        }
    }
}
