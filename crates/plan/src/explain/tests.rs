use std::path::Path;

use model::Verdict;

use super::*;
use crate::tests::{at, compiled, context, machine};
use crate::{Mark, Worktree};

/// The file that the rules of these tests are in.
const FILE: &str = "/home/u/proj/ringwall.toml";

/// One denied attempt, and what the user reads about it.
struct Row {
    level: Level,
    access: Access,
    path: &'static str,
    new_directory: bool,
    rule: Rule,
    origin: Origin,
    why: &'static str,
    /// The command that allows it, or the whole advice where there is no command.
    remedy: &'static str,
}

impl Row {
    fn new(access: Access, path: &'static str, rule: Rule, why: &'static str) -> Self {
        Self {
            level: Level::Readwrite,
            access,
            path,
            new_directory: false,
            rule,
            origin: Origin::BuiltIn,
            why,
            remedy: "",
        }
    }

    fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    fn new_directory(self) -> Self {
        Self { new_directory: true, ..self }
    }
}

fn line(line: usize) -> Origin {
    Origin::File { path: FILE.into(), line }
}

fn rule(text: &str, number: usize) -> Sourced<PathRule> {
    let value = PathRule::parse(text, Path::new("/home/u/proj"), &at("/home/u")).unwrap();
    Sourced { value, origin: line(number) }
}

/// A policy with one rule of each kind, in a project that is a linked worktree.
fn explain(row: &Row) -> Reason {
    let mut policy = Policy::built_in();
    policy.level = Sourced { value: row.level, origin: line(1) };
    policy.filesystem.deny_read = vec![rule("secrets", 2)];
    policy.filesystem.deny_write = vec![rule("vendor", 3)];
    let mut context = context();
    context.own_files.push(at("/home/u/.local/state/ringwall"));
    context.closed.push(at("/home/u/repo/other"));
    let mut machine = machine();
    machine.marked.push(crate::Marked {
        path: at("/home/u/proj/vendor"),
        mark: Mark::ReadOnly,
        entry: crate::Entry::Directory,
    });
    machine.marked.push(crate::Marked {
        path: at("/home/u/proj/linked-settings"),
        mark: Mark::ReadOnly,
        entry: crate::Entry::File,
    });
    machine.worktree = Some(Worktree {
        common: at("/home/u/repo"),
        own: at("/home/u/repo/worktrees/proj"),
        head: "ref: refs/heads/proj".into(),
        branch_dirs: Vec::new(),
        missing: Vec::new(),
        own_refs: Vec::new(),
        others: Vec::new(),
        present: Vec::new(),
    });
    let plan = compiled(&policy, &context, &machine);
    let protections = Protections::new(&policy, &context, |_| None);
    let explainer =
        Explainer { plan: &plan, policy: &policy, context: &context, protections: &protections };
    explainer.explain(row.access, &at(row.path), row.new_directory)
}

#[test]
fn every_cause_has_its_rule_its_text_and_its_remedy() {
    use Access::{Read, Write};
    const OUTSIDE: &str = "outside the workspace /home/u/proj";
    const USER_ONLY: &str = "only the user can change it, outside the agent";
    let rows = [
        Row::new(Read, "/home/u/.ssh/id_ed25519", Rule::Workspace, OUTSIDE)
            .remedy("ringwall grant read /home/u/.ssh/id_ed25519"),
        Row::new(Read, "/home/u/my notes", Rule::Workspace, OUTSIDE)
            .remedy("ringwall grant read '/home/u/my notes'"),
        Row::new(Write, "/home/u/notes.txt", Rule::Workspace, OUTSIDE)
            .remedy("ringwall grant write /home/u/notes.txt"),
        // A directory that does not exist yet is granted with a slash at its end.
        Row::new(Write, "/home/u/out", Rule::Workspace, OUTSIDE)
            .new_directory()
            .remedy("ringwall grant write /home/u/out/"),
        Row::new(
            Write,
            "/home/u/proj/.git/hooks/pre-commit",
            Rule::Protected,
            "`.git/hooks` is a protected name: git runs programs it names",
        )
        .remedy(NO_GRANT),
        // A protected name is protected outside the workspace too: a grant would not help.
        Row::new(
            Write,
            "/home/u/.bashrc",
            Rule::Protected,
            "`.bashrc` is a protected name: a shell or tool reads it when it starts",
        )
        .remedy(NO_GRANT),
        Row::new(Write, FILE, Rule::Protected, "it belongs to Ringwall").remedy(USER_ONLY),
        Row::new(
            Write,
            "/home/u/.local/state/ringwall/audit/log",
            Rule::Protected,
            "it belongs to Ringwall",
        )
        .remedy(USER_ONLY),
        Row::new(Read, "/home/u/proj/secrets/key", Rule::DenyRead, "the rule `secrets` denies it")
            .from(line(2))
            .remedy("the user can allow it by removing that entry (/home/u/proj/ringwall.toml:2)"),
        // What must not be read must not be written either.
        Row::new(Write, "/home/u/proj/secrets/key", Rule::DenyRead, "the rule `secrets` denies it")
            .from(line(2))
            .remedy("the user can allow it by removing that entry (/home/u/proj/ringwall.toml:2)"),
        Row::new(
            Write,
            "/home/u/proj/vendor/lib.c",
            Rule::DenyWrite,
            "the rule `vendor` denies it",
        )
        .from(line(3))
        .remedy("the user can allow it by removing that entry (/home/u/proj/ringwall.toml:3)"),
        Row::new(
            Write,
            "/home/u/proj/src/main.rs",
            Rule::Level,
            "level `readonly` does not allow writing",
        )
        .at(Level::Readonly)
        .from(line(1))
        .remedy("ringwall grant write /home/u/proj/src/main.rs"),
        Row::new(Write, "/etc/hosts", Rule::Level, "level `full` allows only your own files")
            .at(Level::Full)
            .from(line(1))
            .remedy("ringwall grant write /etc/hosts"),
        Row::new(
            Read,
            "/home/u/repo/other/src/main.rs",
            Rule::Protected,
            "it belongs to another checkout of the repository",
        )
        .remedy(NO_GRANT),
        Row::new(
            Write,
            "/home/u/proj/linked-settings",
            Rule::Protected,
            "a protected name or the configuration of git leads to it",
        )
        .remedy(NO_GRANT),
        // Moving this directory would move the protected name in it.
        Row::new(
            Write,
            "/home/u/proj/.claude",
            Rule::Protected,
            "it contains the protected name `.claude/settings.json`",
        )
        .remedy(NO_GRANT),
        Row::new(Write, "/home/u/proj/src", Rule::Protected, "it contains a protected name")
            .remedy(NO_GRANT),
    ];
    for row in rows {
        let reason = explain(&row);
        let path = row.path;
        assert_eq!(reason.verdict, Verdict::Deny, "{path}");
        assert_eq!((reason.rule, reason.why()), (row.rule, row.why), "{path}");
        assert_eq!(reason.origin, row.origin, "{path}");
        let tried = format!("{} {path} is denied: {}", row.access.gerund(), row.why);
        assert_eq!(reason.text, tried, "{path}");
        let remedy = reason.instead.unwrap();
        let remedy = remedy.command().unwrap_or_else(|| remedy.to_string());
        assert_eq!(remedy, row.remedy, "{path}");
    }
}
