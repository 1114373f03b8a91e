//! Operations of git that are not finished, and what git does when they are continued.
//!
//! A run may stop in the middle of a rebase, and the user continues it. So a list of what remains to
//! be done may contain only what changes commits: git runs the commands that are in such a list.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use facts::git_config::is_harmless as is_harmless_config;
use facts::{Step, Visit, read_bytes};
use model::AbsPath;
use plan::{Entry, Mark, Marked, Worktree};

use crate::aside::{aside, replace};
use crate::events::Tampering;
use crate::sweep::is_new;

/// The lists of what remains to be done, in a git directory.
const LISTS: &[&str] = &["rebase-merge/git-rebase-todo", "sequencer/todo"];
/// What a list may say, by its long and its short name. Everything else may run a program.
const STEPS: &[&str] = &[
    "pick",
    "p",
    "revert",
    "edit",
    "e",
    "reword",
    "r",
    "fixup",
    "f",
    "squash",
    "s",
    "drop",
    "d",
    "noop",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "break",
    "b",
    "update-ref",
    "u",
];
/// The strategies that are part of git. For any other it looks for a program of that name.
const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];
/// Options of `git apply` that `git am` keeps, besides those with numbers.
const APPLY: &[&str] = &["--ignore-space-change", "--ignore-whitespace", "--reject"];
/// The same, with values. Git itself keeps such paths inside the checkout.
const APPLY_WITH: &[&str] = &["--whitespace=", "--directory=", "--exclude=", "--include="];
/// Directories of old ways to describe a remote repository.
const REMOTES: &[&str] = &["remotes", "branches"];

/// A list longer than this is no list.
const LARGEST: usize = 16 << 20;

/// The lists that were there before a run, by their paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unfinished(pub(crate) BTreeMap<PathBuf, Vec<u8>>);

impl Unfinished {
    /// Reads the lists of every git directory that was found.
    pub(crate) fn before(marked: &[Marked], worktree: Option<&Worktree>) -> Self {
        let is_git =
            |marked: &&Marked| marked.mark == Mark::Pinned && marked.entry == Entry::Directory;
        let gits = marked.iter().filter(is_git).map(|marked| &marked.path);
        let gits = gits.chain(worktree.map(|worktree| &worktree.own));
        let lists = gits.flat_map(|git| LISTS.iter().map(|list| git.as_path().join(list)));
        let read = |list: PathBuf| Some((list.clone(), read_bytes(&list, LARGEST).ok()?));
        Self(lists.filter_map(read).collect())
    }

    /// Whether a line was in a list before.
    fn has(&self, list: &Path, line: &[u8]) -> bool {
        let before = self.0.get(list);
        before.is_some_and(|text| text.split(|byte| *byte == b'\n').any(|known| known == line))
    }
}

/// Takes out of a git directory what would run a program when an operation is continued.
pub(crate) fn sweep(git: &AbsPath, before: &Unfinished, since: SystemTime) -> Vec<Tampering> {
    let git = git.as_path();
    let mut found = Vec::new();
    for dir in ["rebase-merge", "rebase-apply", "sequencer"] {
        let dir = git.join(dir);
        if dir.is_symlink() {
            found.push(aside(&dir, "a link in place of an unfinished git operation appeared"));
        }
    }
    found.extend(new_links(git, since).iter().map(|link| {
        aside(link, "a link in a git directory appeared, and git would write through it")
    }));
    found.extend(LISTS.iter().filter_map(|list| clean(&git.join(list), before)));
    let strategy = git.join("rebase-merge/strategy");
    if is_new(&strategy, since) && !is_strategy(&strategy) {
        found.push(aside(&strategy, "a merge strategy that is a program appeared"));
    }
    let options = git.join("sequencer/opts");
    if is_new(&options, since) && !has_plain_options(&options) {
        found.push(aside(&options, "a merge strategy that is a program appeared"));
    }
    let options = git.join("rebase-apply/apply-opt");
    if is_new(&options, since) && !only_applies(&options) {
        found.push(aside(
            &options,
            "options of an unfinished `git am` that write elsewhere appeared",
        ));
    }
    let start = git.join("BISECT_START");
    if is_new(&start, since) && !names_commit(&start) {
        found.push(aside(&start, "a start of a bisection that is an option of git appeared"));
    }
    let names = git.join("BISECT_NAMES");
    if is_new(&names, since) && !is_quoted(&names) {
        found.push(aside(&names, "a list of paths that a shell would evaluate appeared"));
    }
    for dir in REMOTES {
        for entry in git.join(dir).read_dir().into_iter().flatten().flatten() {
            if is_new(&entry.path(), since) {
                found.push(aside(&entry.path(), "a file that describes a git remote appeared"));
            }
        }
    }
    found
}

/// The links in a git directory that are new. Git makes none.
fn new_links(git: &Path, since: SystemTime) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let Ok(git) = AbsPath::lexical(git) else { return links };
    let objects = git.join("objects".as_ref());
    facts::walk_deep(&git, &mut |visit| {
        let Visit::Entry(path, kind) = visit else { return Step::Past };
        if kind.is_symlink() && is_new(path.as_path(), since) {
            links.push(path.as_path().to_path_buf());
        }
        // A directory is new where something new is in it. The others hold most of the files.
        let old = path.parent() == objects && !is_new(path.as_path(), since);
        if old { Step::Past } else { Step::Into }
    });
    links
}

/// Takes the commands out of a list. The list as it was is kept under another name, and what it says
/// about commits stays, so that the operation can be continued or aborted.
fn clean(list: &Path, before: &Unfinished) -> Option<Tampering> {
    list.symlink_metadata().ok()?;
    let text = if list.is_symlink() { None } else { read_bytes(list, LARGEST).ok() };
    let Some(text) = text else {
        return Some(aside(list, "a list of git operations that cannot be read appeared"));
    };
    let harmless = |line: &&[u8]| is_harmless(line) || before.has(list, line);
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    let kept: Vec<_> = lines.iter().copied().filter(harmless).collect();
    if kept.len() == lines.len() {
        return None;
    }
    let what = "commands in a list of git operations appeared";
    Some(replace(list, &kept.join(&b'\n'), what))
}

fn is_harmless(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    word.is_empty() || word.starts_with(b"#") || STEPS.iter().any(|step| step.as_bytes() == word)
}

fn is_strategy(file: &Path) -> bool {
    let text = read_bytes(file, LARGEST).unwrap_or_default();
    STRATEGIES.iter().any(|strategy| strategy.as_bytes() == text.trim_ascii())
}

/// Whether the options of an unfinished operation, which are a git configuration, name no strategy of
/// another program.
fn has_plain_options(file: &Path) -> bool {
    let text = read_bytes(file, LARGEST).unwrap_or_else(|_| b"strategy".to_vec());
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    text.lines().all(|line| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        !key.contains("strategy")
            || key.trim() == "strategy-option"
            || (key.trim() == "strategy" && STRATEGIES.contains(&value.trim()))
    })
}

/// Whether the options that `git am` passes on say only how patches are applied. Others name files that
/// `git apply` writes, wherever they are.
fn only_applies(file: &Path) -> bool {
    let text = read_bytes(file, LARGEST).unwrap_or_else(|_| b"x".to_vec());
    let Ok(text) = String::from_utf8(text) else { return false };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    is_quoted(file)
        && !text.contains('\\')
        && text.split('\'').skip(1).step_by(2).all(|option| {
            APPLY.contains(&option)
                || APPLY_WITH.iter().any(|start| option.starts_with(start))
                || option.strip_prefix("-C").is_some_and(is_number)
                || option.strip_prefix("-p").is_some_and(is_number)
        })
}

/// Whether a file names one commit or branch, and no option.
fn names_commit(file: &Path) -> bool {
    read_bytes(file, LARGEST).is_ok_and(|text| !text.trim_ascii().starts_with(b"-"))
}

/// Whether what a host's git writes about linked worktrees is all that is there. A user may add one
/// while a run goes on, and it works with the repository that it is in.
pub(crate) fn are_plain_worktrees(dir: &Path) -> bool {
    let is_plain = |own: &Path| {
        let is_absent = |name: &&str| own.join(name).symlink_metadata().is_err();
        let config = own.join("config.worktree");
        let shared = read_bytes(&own.join("commondir"), LARGEST).unwrap_or_default();
        own.symlink_metadata().is_ok_and(|found| found.is_dir())
            && !own.join("commondir").is_symlink()
            && shared.trim_ascii() == b"../.."
            && ["config", "hooks", "modules", "objects"].iter().all(&is_absent)
            && (is_absent(&"config.worktree")
                || (!config.is_symlink() && is_harmless_config(&config)))
    };
    let Ok(entries) = dir.read_dir() else { return false };
    !dir.is_symlink() && entries.flatten().all(|entry| is_plain(&entry.path()))
}

/// Whether a file contains only words in quotation marks of the shell. Old versions of git have a
/// shell evaluate it.
fn is_quoted(file: &Path) -> bool {
    let text = read_bytes(file, LARGEST).unwrap_or_else(|_| b"x".to_vec());
    let mut inside = false;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => inside = !inside,
            _ if inside => {}
            b' ' | b'\n' => {}
            // How a quotation mark is quoted.
            b'\\' if matches!(bytes.next(), Some(b'\'' | b'!')) => {}
            _ => return false,
        }
    }
    !inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_that_change_commits_stay_in_a_list() {
        for (line, harmless) in [
            ("pick 1234 exec x", true),
            ("p 1234", true),
            ("merge -C 1234 topic # text", true),
            ("update-ref refs/heads/x", true),
            ("# exec x", true),
            ("", true),
            ("exec touch x", false),
            ("x touch x", false),
            ("  \texec touch x", false),
            ("execute", false),
            ("exec\ttouch", false),
            ("PICK 1", false),
            ("; x", false),
        ] {
            assert_eq!(is_harmless(line.as_bytes()), harmless, "{line}");
        }
    }

    #[test]
    fn what_was_in_a_list_before_stays() {
        let dir = tempfile::tempdir().unwrap();
        let git = AbsPath::lexical(&dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(git.as_path().join("rebase-merge")).unwrap();
        let list = git.as_path().join("rebase-merge/git-rebase-todo");
        let is_git = Marked { path: git.clone(), mark: Mark::Pinned, entry: Entry::Directory };
        std::fs::write(&list, "exec make\npick 1\n").unwrap();
        let before = Unfinished::before(&[is_git], None);
        let now = SystemTime::now();
        assert_eq!(sweep(&git, &before, now), []);
        std::fs::write(&list, "exec make\nexec evil\npick 1\n").unwrap();
        assert_eq!(sweep(&git, &before, now).len(), 1);
        assert_eq!(std::fs::read_to_string(&list).unwrap(), "exec make\npick 1\n");
        assert_eq!(sweep(&git, &before, now), []);
    }

    #[test]
    fn only_options_that_apply_patches_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("apply-opt");
        for (text, harmless) in [
            ("\n", true),
            (" '-C1' '-p2' '--whitespace=fix' '--reject'\n", true),
            (" '--directory=sub'\n", true),
            (" '--build-fake-ancestor=/home/u/.profile'\n", false),
            (" '--build-f=x'\n", false),
            (" '--unsafe-paths'\n", false),
            (" '-p1R'\n", false),
            (" '-C1' x\n", false),
            (" '--whitespace=fix''\\''x'\n", false),
            ("--unsafe-paths", false),
            (" '-C1", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(only_applies(&file), harmless, "{text}");
        }
        assert!(!only_applies(&dir.path().join("absent")));
    }

    #[test]
    fn quoted_paths_are_no_commands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("BISECT_NAMES");
        for (text, quoted) in [
            ("\n", true),
            (" 'a' 'b c'\n", true),
            (" 'it'\\''s'\n", true),
            ("$(touch x)\n", false),
            (" 'a';touch x", false),
            (" 'a", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(is_quoted(&file), quoted, "{text}");
        }
    }
}
