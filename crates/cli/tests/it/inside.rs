//! "Inside" means inside: the guard against the kernel on generated trees.
//!
//! For each tree and path, the guard's verdict is held against what `openat2` really reaches. The
//! law: whatever the guard calls inside, the kernel reaches inside or not at all.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use model::{AbsPath, Access, Action, PathRef, Verdict};
use policy::{Context, Policy, Scene, SettingsContext};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

const TREES: usize = 2_500;
const PATHS_PER_TREE: usize = 50;

#[test]
fn what_the_guard_calls_inside_the_kernel_reaches_inside() {
    let seed = std::env::var("RINGWALL_SEED").ok().and_then(|seed| seed.parse().ok());
    // A failure names its tree and path; the seed makes the run the same again.
    let mut random = Random(seed.unwrap_or(0x5eed_0000_0000_0001));
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let mut tally = Tally::default();
    for number in 0..TREES {
        let tree = Tree::grow(&base.join(number.to_string()), &mut random);
        for _ in 0..PATHS_PER_TREE {
            let path = tree.path(&mut random);
            tree.compare(&path, &mut tally);
        }
        std::fs::remove_dir_all(&tree.top).unwrap();
    }
    assert_eq!(tally.cases, TREES * PATHS_PER_TREE);
    // A run in which one side never happens proves nothing.
    for count in [tally.inside, tally.outside, tally.beneath, tally.created, tally.unresolvable] {
        assert!(count > 1_000, "{tally:?}");
    }
}

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    /// The guard allowed, and the kernel reached something inside.
    inside: usize,
    /// The guard refused, and the kernel reached something outside.
    outside: usize,
    /// The kernel agreed with `RESOLVE_BENEATH`.
    beneath: usize,
    /// Missing files that were really created, inside.
    created: usize,
    /// Neither side could go there.
    unresolvable: usize,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// `top/ws` is the workspace; `top/ws-evil` and `top/out` are not.
struct Tree {
    top: PathBuf,
    workspace: PathBuf,
}

const NAMES: &[&str] = &["a", "b", "c", "ü", "文", "a b", "..x", "…", "-", "nl\nx", "A"];

impl Tree {
    fn grow(top: &Path, random: &mut Random) -> Self {
        let workspace = top.join("ws");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(top.join("out/a")).unwrap();
        std::fs::create_dir_all(top.join("ws-evil")).unwrap();
        std::fs::write(top.join("out/b"), "x").unwrap();
        let tree = Self { top: top.to_path_buf(), workspace };
        let mut dirs = vec![tree.workspace.clone()];
        for _ in 0..3 + random.below(7) {
            let at = dirs[random.below(dirs.len())].join(random.pick(NAMES));
            match random.below(5) {
                0 | 1 => {
                    if std::fs::create_dir(&at).is_ok() {
                        dirs.push(at);
                    }
                }
                2 => drop(std::fs::write(&at, "x")),
                _ => drop(symlink(tree.link_target(random), &at)),
            }
        }
        tree
    }

    fn link_target(&self, random: &mut Random) -> PathBuf {
        let relative = Self::steps(random, 4);
        match random.below(8) {
            0 => self.top.join("out"),
            1 => self.workspace.join(relative),
            2 => self.top.join("ws-evil"),
            3 => Path::new("/proc/self/cwd").join(relative),
            4 => self.top.join(relative),
            _ => relative,
        }
    }

    fn steps(random: &mut Random, most: usize) -> PathBuf {
        let mut path = PathBuf::from(if random.below(3) == 0 { "." } else { "" });
        for _ in 0..=random.below(most) {
            match random.below(12) {
                0..=2 => path.push(".."),
                3 => path.push("missing"),
                4 => path.push(random.pick(&["ws", "out", "ws-evil"])),
                5 if random.below(10) == 0 => path.push("n".repeat(254 + random.below(4))),
                _ => path.push(random.pick(NAMES)),
            }
        }
        path
    }

    fn path(&self, random: &mut Random) -> PathBuf {
        let steps = Self::steps(random, 6);
        let start = if random.below(6) == 0 { &self.top } else { &self.workspace };
        let mut path = start.join(steps).into_os_string();
        if random.below(8) == 0 {
            path.push("/");
        }
        PathBuf::from(path)
    }

    /// What the guard says to a write of this path.
    fn guard(&self, path: &Path) -> Verdict {
        let abs = |path: &Path| AbsPath::lexical(path).unwrap();
        let ground = Context {
            workspace: abs(&self.workspace),
            home: abs(Path::new("/nonexistent")),
            closed: vec![],
            unfit: None,
            agent_files: vec![],
            own_files: vec![],
            grant_file: PathBuf::from("/x"),
            settings: SettingsContext::default(),
        };
        let path = PathRef { given: path.display().to_string(), at: path.to_path_buf() };
        let actions = [Action::Path { access: Access::Write, path, by: None }];
        let policy = Policy::built_in();
        let cwd = self.workspace.clone();
        let scene = Scene { cwd, home: ground.home.clone(), top: None, quarantine: None };
        let facts = facts::answer(&policy::needs(&policy, &ground, &actions));
        policy::evaluate(&policy, &ground, &scene, &actions, &facts).verdict()
    }

    fn compare(&self, path: &Path, tally: &mut Tally) {
        tally.cases += 1;
        let allowed = self.guard(path) == Verdict::Allow;
        let show = || {
            format!("{} (guard: {})", path.display(), if allowed { "inside" } else { "outside" })
        };
        match open(path, OFlags::PATH, ResolveFlags::empty()) {
            Ok(reached) => {
                let within = self.is_within(&reached);
                assert!(!allowed || within, "the kernel reaches {}: {}", reached.display(), show());
                tally.inside += usize::from(allowed);
                tally.outside += usize::from(!within);
                self.compare_beneath(path, allowed, tally);
            }
            Err(Errno::NOENT) if allowed => {
                // Whatever the kernel would create must be inside.
                if let Ok(reached) =
                    open(path, OFlags::CREATE | OFlags::WRONLY, ResolveFlags::empty())
                {
                    assert!(self.is_within(&reached), "created {}: {}", reached.display(), show());
                    tally.created += 1;
                    std::fs::remove_file(reached).unwrap();
                }
            }
            Err(_) => tally.unresolvable += usize::from(!allowed),
        }
    }

    /// Below the workspace, and without going up in the path's own text, both must agree exactly.
    fn compare_beneath(&self, path: &Path, allowed: bool, tally: &mut Tally) {
        let Ok(relative) = path.strip_prefix(&self.workspace) else { return };
        let root =
            openat2(CWD, &self.workspace, OFlags::PATH, Mode::empty(), ResolveFlags::empty());
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let beneath =
            openat2(root.unwrap(), relative, OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH);
        let climbs = relative.components().any(|part| part.as_os_str() == "..");
        if beneath.is_ok() && !climbs {
            assert!(allowed, "the kernel stays beneath: {}", path.display());
            tally.beneath += 1;
        }
    }

    fn is_within(&self, reached: &Path) -> bool {
        reached.starts_with(&self.workspace)
    }
}

/// Opens a path and says where that really is.
fn open(path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<PathBuf, Errno> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let opened: OwnedFd = openat2(CWD, path, flags | OFlags::CLOEXEC, mode, resolve)?;
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok(std::fs::read_link(OsStr::new(&link)).unwrap())
}
