//! Builds a layout: trees with every kind of entry, protected names in all forms, and git in many.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::shape::{Dice, PROTECTED};
use crate::yard::Yard;

/// A project, and what must stay as it is in it.
pub(super) struct Built {
    pub(super) root: PathBuf,
    /// Protected names that are there, below the root.
    pub(super) present: Vec<PathBuf>,
    /// Protected names that are not, in directories that are.
    pub(super) absent: Vec<PathBuf>,
}

pub(super) fn build(yard: &Yard, root: &Path, dice: &mut Dice) -> Built {
    fs::create_dir(root).unwrap();
    let mut site = Site {
        outside: yard.path("outside"),
        root: root.to_path_buf(),
        dirs: vec![PathBuf::new()],
        present: Vec::new(),
        dice,
    };
    site.tree();
    site.git();
    for _ in 0..site.dice.below(7) {
        site.protected();
    }
    let absent = site.absent();
    let Site { present, dirs, .. } = site;
    yard.own();
    let mut built = Built { root: root.to_path_buf(), present, absent };
    built.present.retain(|path| root.join(path).symlink_metadata().is_ok());
    close_some(&built, &dirs, dice);
    built
}

struct Site<'a> {
    outside: PathBuf,
    root: PathBuf,
    /// Directories so far, below the root.
    dirs: Vec<PathBuf>,
    present: Vec<PathBuf>,
    dice: &'a mut Dice,
}

impl Site<'_> {
    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Ordinary directories and files, a few of them very many or very deep.
    fn tree(&mut self) {
        for _ in 0..self.dice.below(6) {
            let path = self.dir().join(self.dice.name());
            if path.as_os_str().len() < 1500 && fs::create_dir(self.at(&path)).is_ok() {
                self.dirs.push(path);
            }
        }
        for _ in 0..self.dice.below(8) {
            let path = self.dir().join(self.dice.name());
            if self.at(&path).symlink_metadata().is_err() {
                self.entry(&path, false);
            }
        }
        if self.dice.percent(1) {
            let dir = self.dir();
            for number in 0..3000 {
                let _ = fs::write(self.at(&dir).join(format!("many-{number}")), "");
            }
        }
        if self.dice.percent(4) {
            self.deep();
        }
    }

    /// A deep tree with something protected at its end.
    fn deep(&mut self) {
        let mut dir = PathBuf::new();
        for _ in 0..20 + self.dice.below(200) {
            dir.push("deep");
        }
        fs::create_dir_all(self.at(&dir)).unwrap();
        self.dirs.push(dir.clone());
        self.make_protected(&dir.join(".envrc"), false);
    }

    fn dir(&mut self) -> PathBuf {
        self.dice.pick(&self.dirs).clone()
    }

    /// A protected name somewhere, sometimes behind a link.
    fn protected(&mut self) {
        let (name, directory) = *self.dice.pick(PROTECTED);
        let dir = if self.dice.percent(50) { PathBuf::new() } else { self.dir() };
        let path = dir.join(name);
        if let Some(parent) =
            Path::new(name).parent().filter(|parent| !parent.as_os_str().is_empty())
        {
            let parent = dir.join(parent);
            if self.at(&parent).symlink_metadata().is_err() {
                if self.dice.percent(12) {
                    self.linked_parent(&parent, &path, directory);
                    return;
                }
                let _ = fs::create_dir_all(self.at(&parent));
            }
        }
        self.make_protected(&path, directory);
    }

    /// The directory of a protected name is a link: what it leads to counts as that name.
    fn linked_parent(&mut self, parent: &Path, path: &Path, directory: bool) {
        let real = parent.with_file_name(format!("real-{}", self.present.len()));
        if fs::create_dir(self.at(&real)).is_err() {
            return;
        }
        let target = if self.dice.percent(50) { self.at(&real) } else { last(&real) };
        if symlink(target, self.at(parent)).is_ok() {
            let name = path.file_name().unwrap();
            if directory {
                let _ = fs::create_dir(self.at(&real).join(name));
            } else {
                let _ = fs::write(self.at(&real).join(name), "kept\n");
            }
            self.present.push(path.to_path_buf());
            self.present.push(real.join(name));
        }
    }

    fn make_protected(&mut self, path: &Path, directory: bool) {
        if self.at(path).symlink_metadata().is_ok() {
            return;
        }
        let odd = self.dice.percent(35);
        if odd {
            self.entry(path, true);
        } else if directory {
            let _ = fs::create_dir(self.at(path));
            let _ = fs::write(self.at(path).join("inside.json"), "kept\n");
            self.present.push(path.join("inside.json"));
        } else {
            let _ = fs::write(self.at(path), "kept\n");
        }
        self.present.push(path.to_path_buf());
    }

    /// An entry of any kind.
    fn entry(&mut self, path: &Path, protected: bool) {
        let place = self.at(path);
        match self.dice.below(if protected { 9 } else { 10 }) {
            0 => drop(symlink(self.outside.join("secret.txt"), &place)),
            1 => drop(symlink(&self.outside, &place)),
            2 => drop(symlink("nowhere/at/all", &place)),
            3 => drop(symlink(place.file_name().unwrap(), &place)),
            4 => self.link_inside(path),
            5 => drop(mknodat(CWD, &place, FileType::Fifo, Mode::from(0o644), 0)),
            6 => self.socket(&place),
            7 => drop(fs::create_dir(&place)),
            8 if rustix::process::geteuid().is_root() => {
                // The null device, under another name.
                let device = rustix::fs::makedev(1, 3);
                let _ = mknodat(CWD, &place, FileType::CharacterDevice, Mode::from(0o666), device);
            }
            _ => drop(fs::write(&place, "text\n")),
        }
    }

    /// A link to a file of the project, which must then stay as it is too.
    fn link_inside(&mut self, path: &Path) {
        let real = path.with_file_name(format!("file-{}", self.present.len()));
        if fs::write(self.at(&real), "kept\n").is_ok() {
            let _ = symlink(last(&real), self.at(path));
        }
    }

    fn socket(&mut self, place: &Path) {
        // The path of a socket is short.
        let short = self.root.join("s");
        if UnixListener::bind(&short).is_ok() && fs::rename(&short, place).is_err() {
            let _ = fs::remove_file(short);
        }
    }

    /// Git's directory, in the forms that it can have.
    fn git(&mut self) {
        let dir = if self.dice.percent(80) { PathBuf::new() } else { self.dir() };
        let git = dir.join(".git");
        let place = self.at(&git);
        match self.dice.below(10) {
            0 | 1 => return,
            2 | 3 => self.repository(&git),
            4 => drop(fs::create_dir(&place)),
            5 => drop(fs::write(&place, "gitdir: ../elsewhere/.git/worktrees/x\n")),
            6 => {
                if self.dice.percent(50) {
                    self.repository(&dir.join(".real/x"));
                }
                let _ = fs::write(&place, "gitdir: .real/x\n");
            }
            7 => {
                self.repository(&dir.join("real-git"));
                let _ = symlink("real-git", &place);
            }
            8 => drop(symlink(self.outside.join("repository"), &place)),
            _ => drop(mknodat(CWD, &place, FileType::Fifo, Mode::from(0o644), 0)),
        }
        self.present.push(git);
    }

    fn repository(&mut self, git: &Path) {
        let place = self.at(git);
        for dir in ["hooks", "objects/info", "refs/heads", "info"] {
            fs::create_dir_all(place.join(dir)).unwrap();
        }
        fs::write(place.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        for file in ["config", "hooks/pre-commit", "info/attributes"] {
            fs::write(place.join(file), "# kept\n").unwrap();
            self.present.push(git.join(file));
        }
        self.present.push(git.join("hooks"));
    }

    /// Some protected names that are not there.
    fn absent(&mut self) -> Vec<PathBuf> {
        let mut absent = Vec::new();
        for _ in 0..4 {
            let (name, _) = *self.dice.pick(PROTECTED);
            let dir = if self.dice.percent(60) { PathBuf::new() } else { self.dir() };
            let path = dir.join(name);
            let place = self.at(&path);
            // A name in another case is the same name, on some file systems.
            let free =
                place.symlink_metadata().is_err() && place.parent().is_some_and(Path::is_dir);
            let within = |known: &PathBuf| path.starts_with(known);
            if free && !self.present.iter().any(within) {
                absent.push(path);
            }
        }
        absent
    }
}

/// Takes rights away from some entries, and gives some to somebody else.
fn close_some(built: &Built, dirs: &[PathBuf], dice: &mut Dice) {
    let modes = [0o000, 0o100, 0o300, 0o400, 0o500, 0o555, 0o600, 0o711];
    let odd: Vec<_> = dirs.iter().filter(|dir| !dir.as_os_str().is_empty()).collect();
    if dice.percent(25) && !odd.is_empty() {
        let dir = built.root.join(dice.pick(&odd));
        let _ = fs::set_permissions(dir, fs::Permissions::from_mode(*dice.pick(&modes)));
    }
    if dice.percent(20) && !built.present.is_empty() {
        let path = built.root.join(dice.pick(&built.present));
        if path.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(*dice.pick(&modes)));
        }
    }
    if rustix::process::geteuid().is_root() && dice.percent(15) && !odd.is_empty() {
        let _ =
            std::os::unix::fs::lchown(built.root.join(dice.pick(&odd)), Some(12345), Some(12345));
    }
}

fn last(path: &Path) -> PathBuf {
    path.file_name().unwrap().into()
}
