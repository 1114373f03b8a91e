//! Which directories make up a project, and the `ringwall.toml` files in them.

use std::path::{Path, PathBuf};

use facts::{Places, Resolver};
use model::{AbsPath, FileText};

use crate::load::Problem;

/// The name of a project's configuration file.
pub const PROJECT_FILE: &str = "ringwall.toml";

/// The project around a directory: from the top of its git checkout down to the directory itself.
/// Without a checkout, or with one that holds the whole home directory, it is that directory alone.
#[derive(Debug, Clone)]
pub struct Project {
    /// The project's directories, the nearest last.
    own: Vec<PathBuf>,
    /// Directories of checkouts that this one is nested in, the nearest last.
    around: Vec<PathBuf>,
}

impl Project {
    /// The project around `dir`, which must be free of links.
    pub fn around(dir: &Path, home: &AbsPath) -> Self {
        let homes = readings(home.as_path()).unwrap_or_else(|| vec![home.clone()]);
        let holds_home = |top: &Path| homes.iter().any(|home| home.as_path().starts_with(top));
        let checkout = |dir: &Path| facts::git_root(dir).filter(|top| !holds_home(top));
        let top = checkout(dir).unwrap_or_else(|| dir.to_path_buf());
        // The agent may turn its own directory into a checkout. The files above must still apply
        // then, so the search continues above the first checkout.
        let mut outermost = top.clone();
        while let Some(next) = outermost.parent().and_then(checkout) {
            outermost = next;
        }
        let mut own: Vec<_> = dir.ancestors().map(Path::to_path_buf).collect();
        let mut around = own.split_off(own.iter().take_while(|dir| **dir != top).count() + 1);
        around.truncate(around.iter().take_while(|dir| dir.starts_with(&outermost)).count());
        own.reverse();
        around.reverse();
        Self { own, around }
    }

    /// The paths where the project's files can be, the nearest last.
    pub fn files(&self) -> Vec<PathBuf> {
        self.own.iter().map(|dir| dir.join(PROJECT_FILE)).collect()
    }

    /// The paths where the files of surrounding checkouts can be, the nearest last.
    pub(crate) fn files_around(&self) -> Vec<PathBuf> {
        self.around.iter().map(|dir| dir.join(PROJECT_FILE)).collect()
    }

    /// The file that grants are added to: the nearest that exists, else the one at the git root.
    pub fn grant_file(&self) -> PathBuf {
        let files = self.files();
        let there = files.iter().rev().find(|file| file.symlink_metadata().is_ok());
        there.or(files.first()).cloned().unwrap_or_default()
    }

    /// Whether the path that a variable names could be part of the project. An agent's settings in
    /// the project can set variables for hooks, so such a path gets no more trust than the project
    /// itself. Every spelling of the path is compared. A path through `/proc`, or one that does not
    /// resolve, could be anything.
    pub(crate) fn could_bring(&self, path: &Path) -> bool {
        let Some(readings) = readings(path) else { return true };
        let top = self.around.first().or(self.own.first()).map_or(Path::new("/"), |dir| dir);
        let others = facts::other_checkouts(top);
        let places = || others.iter().map(AbsPath::as_path).chain([top, Path::new("/proc")]);
        readings.iter().any(|path| places().any(|place| path.as_path().starts_with(place)))
    }
}

/// A path as it is written and as it resolves, or `None` if it does not resolve.
pub(crate) fn readings(path: &Path) -> Option<Vec<AbsPath>> {
    let lexical = AbsPath::lexical(path).ok()?;
    let mut resolver = Resolver::default();
    // `..` after a link leads elsewhere than the text says, so both are resolved.
    let target = resolver.resolve(path).ok()?;
    let target_of_text = resolver.resolve(lexical.as_path()).ok()?;
    Some(vec![lexical, target, target_of_text])
}

/// Reads a project's file. A symbolic link is an error: it could lead out of the project, and anyone
/// who can write in the project could change its target.
pub fn read_project_file(path: &Path) -> Result<Option<String>, Problem> {
    let problem = |text: String, hint: Option<String>| Problem::new(path, 0, text, hint);
    if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        let text = "is a symbolic link; a project file must be a regular file".to_owned();
        return Err(problem(text, Some("replace the link with the file".into())));
    }
    match facts::read_small(path) {
        FileText::Text(text) => Ok(Some(text)),
        FileText::Missing => Ok(None),
        FileText::Unreadable(why) => Err(problem(why, None)),
    }
}

/// Whether a variable moved one of our directories into the project. A usual place is never in the
/// project, except through `/proc`, where no home directory is.
pub(crate) fn is_brought(project: &Project, places: &Places, dir: &Path) -> bool {
    if places.is_usual(dir) { dir.starts_with("/proc") } else { project.could_bring(dir) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf, AbsPath) {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap();
        for dir in dirs {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        let home = AbsPath::lexical(&root.join("home")).unwrap();
        (guard, root, home)
    }

    #[test]
    fn a_project_reaches_up_to_its_git_root_and_no_further() {
        let (_guard, root, home) = tree(&["home", "p/.git", "p/a/b"]);
        let project = Project::around(&root.join("p/a/b"), &home);
        let expected = ["p", "p/a", "p/a/b"].map(|dir| root.join(dir).join(PROJECT_FILE));
        assert_eq!(project.files(), expected);
        assert!(project.files_around().is_empty());
        assert_eq!(project.grant_file(), expected[0]);
        std::fs::write(&expected[1], "").unwrap();
        assert_eq!(project.grant_file(), expected[1]);
    }

    #[test]
    fn without_a_checkout_it_is_the_directory_alone() {
        let (_guard, root, home) = tree(&["home/.git", "home/p/a", "other/a"]);
        for dir in ["other/a", "home/p/a", "home"] {
            let project = Project::around(&root.join(dir), &home);
            assert_eq!(project.files(), [root.join(dir).join(PROJECT_FILE)], "{dir}");
            assert!(project.files_around().is_empty(), "{dir}");
        }
    }

    #[test]
    fn a_checkout_within_a_checkout_stays_below_the_files_around_it() {
        let (_guard, root, home) = tree(&["home", "p/.git", "p/a/b/.git", "p/a/b/c"]);
        let project = Project::around(&root.join("p/a/b/c"), &home);
        let files = |dirs: &[&str]| -> Vec<_> {
            dirs.iter().map(|dir| root.join(dir).join(PROJECT_FILE)).collect()
        };
        assert_eq!(project.files(), files(&["p/a/b", "p/a/b/c"]));
        assert_eq!(project.files_around(), files(&["p", "p/a"]));
    }

    #[test]
    fn whatever_leads_into_the_project_could_have_come_with_it() {
        use std::os::unix::fs::symlink;
        let (_guard, root, home) = tree(&["home", "p/.git", "p/a", "q"]);
        symlink(root.join("p"), root.join("alias")).unwrap();
        symlink(root.join("q"), root.join("p/out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let project = Project::around(&root.join("p/a"), &home);
        for path in ["p/x", "p/a/x", "alias/x", "q/../p/x", "p/out/x", "loop/x", "none/../q/x"] {
            assert!(project.could_bring(&root.join(path)), "{path}");
        }
        assert!(project.could_bring(Path::new("/proc/self/cwd/x")));
        for path in ["q/x", "x", "p-evil/x"] {
            assert!(!project.could_bring(&root.join(path)), "{path}");
        }
    }
}
