//! Tables of what may happen to names during a run, for every kind of name and operation.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::{AbsPath, Sourced};
use plan::{Protections, Worktree};
use policy::{Context, PathRule, Policy, SettingsContext};
use sandbox::Operation::{
    self, ChangeMode, ChangeTimes, Create, Link, MakeDirectory, Remove, Rename, SymbolicLink,
    Truncate, Write,
};

use super::NewNames;

/// A workspace on disk. `.git`, `.envrc` and `.claude` were there before the run.
struct Workspace {
    dir: tempfile::TempDir,
    policy: Policy,
}

const YES: bool = true;
const NO: bool = false;

impl Workspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for path in [".git/hooks", ".git/objects/ab", ".claude", "sub", "seen.git"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        for path in [".git/config", ".git/hooks/pre-commit", ".git/objects/ab/cd", ".envrc"] {
            fs::write(dir.path().join(path), "").unwrap();
        }
        let mut workspace = Self { dir, policy: Policy::built_in() };
        let rule = |text: &str| {
            let base = workspace.at("");
            Sourced::built_in(PathRule::parse(text, base.as_path(), &base).unwrap())
        };
        let (hidden, read_only) = (rule("**/*.pem"), rule("read_only"));
        workspace.policy.filesystem.deny_read = vec![hidden];
        workspace.policy.filesystem.deny_write = vec![read_only];
        workspace
    }

    fn at(&self, path: &str) -> AbsPath {
        AbsPath::lexical(&self.dir.path().join(path)).unwrap()
    }

    fn new_names(&self, worktree: Option<&Worktree>) -> NewNames {
        let before = [".git", ".git/config", ".git/hooks", ".envrc", ".claude/settings.json"];
        NewNames::new(
            before.map(|path| self.at(path)),
            [self.at(".git/hooks")],
            [self.at("dangling")],
            [self.at("odd")],
            worktree,
            // Everything on disk is older than this.
            SystemTime::now() + Duration::from_mins(1),
        )
    }

    fn assert(&self, new_names: &NewNames, table: &[(&str, Operation, bool)]) {
        let context = Context {
            workspace: self.at(""),
            home: self.at("home"),
            closed: Vec::new(),
            unfit: None,
            agent_files: Vec::new(),
            own_files: Vec::new(),
            grant_file: PathBuf::new(),
            settings: SettingsContext::default(),
        };
        let protections = Protections::new(&self.policy, &context, |path| Some(path.clone()));
        for (path, operation, forbidden) in table {
            let found = new_names.forbids(&protections, &self.at(path), *operation);
            assert_eq!(found, *forbidden, "{operation:?} {path}");
        }
    }
}

#[test]
fn plain_names_are_free_and_marked_names_are_not() {
    let workspace = Workspace::new();
    workspace.assert(
        &workspace.new_names(None),
        &[
            ("src/main.rs", Create, NO),
            ("src/main.rs", Remove, NO),
            ("src", Rename, NO),
            (".gitignore", Write, NO),
            // A rule hides it.
            ("key.pem", Create, YES),
            ("sub/key.pem", Rename, YES),
            // A rule denies writing it, or a directory above it.
            ("read_only", Write, YES),
            ("read_only/a/b", Create, YES),
            // Protected by their names.
            (".envrc", Write, YES),
            (".envrc", Remove, YES),
            ("sub/.envrc", Create, YES),
            (".claude/settings.json", Truncate, YES),
            ("sub/.claude/settings.json", Create, YES),
            (".ENVRC", Create, YES),
            // Something that leads to a path that did not exist.
            ("dangling", Create, YES),
            ("dangling", MakeDirectory, YES),
        ],
    );
}

#[test]
fn a_tree_that_could_hold_protected_names_is_not_moved_into_place() {
    let workspace = Workspace::new();
    workspace.assert(
        &workspace.new_names(None),
        &[
            (".claude", Rename, YES),
            (".claude", SymbolicLink, YES),
            (".cursor", Link, YES),
            ("sub/.cursor", Rename, YES),
            // What acts later is judged at the end.
            (".vscode", Link, NO),
            ("sub/.vscode", Rename, NO),
            // Made empty, it holds nothing yet.
            (".vscode", MakeDirectory, NO),
            (".claude", Remove, NO),
            ("sub", Rename, NO),
        ],
    );
}

#[test]
fn an_old_repository_stays_as_it_is() {
    let workspace = Workspace::new();
    workspace.assert(
        &workspace.new_names(None),
        &[
            (".git/config", Write, YES),
            (".git/config", Remove, YES),
            (".git/hooks", Rename, YES),
            (".git/hooks/pre-commit", Write, YES),
            (".git/hooks/new.sample", Create, YES),
            (".git/objects/info/alternates", Create, YES),
            (".git/index.lock", Create, NO),
            (".git/objects/ab/cd", Create, NO),
            // Itself.
            (".git", Rename, YES),
            (".git", SymbolicLink, YES),
            (".git", Create, YES),
            (".git", ChangeMode, YES),
            (".git", ChangeTimes, YES),
            // What is there already is not made, and a directory with something in it stays.
            (".git", MakeDirectory, NO),
            (".git", Remove, NO),
        ],
    );
}

#[test]
fn a_new_repository_gets_what_git_writes_and_nothing_that_names_programs() {
    let workspace = Workspace::new();
    let new_names = workspace.new_names(None);
    workspace.assert(
        &new_names,
        &[
            ("new/.git", MakeDirectory, NO),
            ("new/.git", ChangeMode, NO),
            ("new/.git", Rename, YES),
            ("new/.git/config", Create, NO),
            ("new/.git/config", Write, NO),
            ("new/.git/hooks", MakeDirectory, NO),
            ("new/.git/hooks/pre-commit.sample", Create, NO),
            ("new/.git/hooks/pre-commit", Create, YES),
            ("new/.git/hooks/pre-commit", Remove, NO),
            ("new/.git/config.worktree", Create, YES),
            ("new/.git/commondir", Create, YES),
            ("new/.git/info/attributes", Create, YES),
            ("new/.git/objects/info/alternates", Create, NO),
            ("new/.git/HEAD", Create, NO),
        ],
    );
    assert_eq!(new_names.made().into_iter().collect::<Vec<_>>(), [workspace.at("new/.git")]);
}

/// A repository where nothing was looked for before the run is old by the time of its creation.
#[test]
fn a_repository_that_was_not_listed_is_judged_by_its_age() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.dir.path().join("unseen/.git/hooks")).unwrap();
    let table = |forbidden| {
        [("unseen/.git/config", Create, forbidden), ("unseen/.git", ChangeMode, forbidden)]
    };
    if fs::metadata(workspace.dir.path()).unwrap().created().is_ok() {
        workspace.assert(&workspace.new_names(None), &table(YES));
    }
    let since_ever = NewNames::new([], [], [], [], None, SystemTime::UNIX_EPOCH);
    workspace.assert(&since_ever, &table(NO));
}

#[test]
fn a_linked_worktree_writes_its_own_part_and_new_objects() {
    let workspace = Workspace::new();
    let worktree = Worktree {
        common: workspace.at(".git"),
        own: workspace.at(".git/worktrees/a"),
        head: "ref: refs/heads/agent".into(),
        branch_dirs: vec![workspace.at(".git/refs/heads")],
        missing: Vec::new(),
        own_refs: vec![workspace.at(".git/refs/heads/agent")],
        others: Vec::new(),
        present: Vec::new(),
    };
    let new_names = workspace.new_names(Some(&worktree));
    workspace.assert(
        &new_names,
        &[
            (".git/worktrees/a/index", Write, NO),
            (".git/worktrees/a/HEAD", Rename, NO),
            (".git/worktrees/a/commondir", Write, YES),
            (".git/worktrees/a/config.worktree", Create, YES),
            (".git/refs/heads/agent", Write, NO),
            (".git/refs/heads/agent.lock", Create, NO),
            (".git/refs/heads/other", Write, YES),
            (".git/refs/heads/other", Create, YES),
            // Objects may be added, and not changed.
            (".git/objects/ab/ef", Create, NO),
            (".git/objects/ab/ef", Rename, NO),
            (".git/objects/ab/cd", Create, YES),
            (".git/objects/ab/cd", Write, YES),
            (".git/objects/ab/cd", Remove, YES),
            (".git/objects/ab/cd", ChangeTimes, NO),
            (".git/objects/ab/tmp_obj_x", Write, NO),
        ],
    );
    assert!(new_names.is_packed_refs_lock(&workspace.at(".git/packed-refs.lock")));
    assert!(!new_names.is_packed_refs_lock(&workspace.at("packed-refs.lock")));
}

#[test]
fn the_git_directory_of_a_path_is_found_by_name() {
    let root = Path::new("/p");
    for (path, git, below) in [
        ("a/.git", Some("a/.git"), ""),
        ("a/.git/hooks/x", Some("a/.git"), "hooks/x"),
        ("a/.git/modules/b.git/config", Some("a/.git"), "modules/b.git/config"),
        ("a.git/config", Some("a.git"), "config"),
        ("a.git/b.git/config", Some("a.git/b.git"), "config"),
        ("a/git/config", None, ""),
        ("a/.github/x", None, ""),
    ] {
        let found = super::repository(&AbsPath::lexical(&root.join(path)).unwrap());
        let expected =
            git.map(|git| (AbsPath::lexical(&root.join(git)).unwrap(), PathBuf::from(below)));
        assert_eq!(found, expected, "{path}");
    }
}
