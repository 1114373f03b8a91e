//! The rules that an agent gets when a session starts, written from the policy.

use std::fmt::Write;

use model::{Level, Sourced};
use policy::{PathRule, Policy, QuarantineMode};

use crate::setup::Setup;

/// The rules in a few lines, for the model to read.
pub(crate) fn rules(setup: &Setup) -> String {
    let policy = &setup.loaded.policy;
    let workspace = &setup.context.workspace;
    let mut text = String::from("# Ringwall: the rules of this session\n");
    let kind =
        if setup.context.closed.is_empty() { "" } else { " It is an isolated git worktree." };
    line(&mut text, &format!("You work in {workspace}.{kind}"));
    line(
        &mut text,
        &match policy.level.value {
            Level::Readonly => {
                "You can read there, but you can write only what is allowed below.".into()
            }
            level => format!(
                "You can read and write there (level {level}). Your file tools are denied elsewhere."
            ),
        },
    );
    for place in &setup.context.closed {
        line(&mut text, &format!("{place} is another checkout: never work there."));
    }
    list(&mut text, "You may also read", &policy.filesystem.allow_read);
    list(&mut text, "You may also write", &policy.filesystem.allow_write);
    list(&mut text, "Never read or write", &policy.filesystem.deny_read);
    list(&mut text, "Never write", &policy.filesystem.deny_write);
    quarantine(&mut text, policy);
    line(&mut text, "You cannot write agent settings, hooks, git configuration or ringwall.toml.");
    line(&mut text, "No one can answer questions: decide yourself and note what you assumed.");
    line(
        &mut text,
        "A denial begins with `ringwall:` and says what to do instead. Do that, and do not look for \
         a way around it. At the end, list what only the user can allow.",
    );
    text
}

fn line(text: &mut String, sentence: &str) {
    let _ = writeln!(text, "- {sentence}");
}

fn list(text: &mut String, heading: &str, rules: &[Sourced<PathRule>]) {
    if !rules.is_empty() {
        let rules: Vec<_> = rules.iter().map(|rule| rule.value.text()).collect();
        line(text, &format!("{heading}: {}", rules.join(", ")));
    }
}

fn quarantine(text: &mut String, policy: &Policy) {
    let Some(dir) = &policy.quarantine.dir else { return };
    let dir = dir.value.text();
    let how = match policy.quarantine.mode.value {
        QuarantineMode::Redirect => "commands that download elsewhere are corrected or denied",
        QuarantineMode::Block => "commands that download elsewhere are denied",
    };
    line(text, &format!("Put clones and downloads in {dir}: {how}."));
}

/// Pins git to a linked worktree for every later shell of the session, where `git.pin_env` is set.
pub(crate) fn pin_git(setup: &Setup) {
    if !setup.loaded.policy.git.pin_env.value || setup.context.closed.is_empty() {
        return;
    }
    let workspace = setup.context.workspace.as_path();
    let Some(git_dir) = facts::linked_git_dir(workspace) else { return };
    let Some(file) = setup.agent.env_file_variable.and_then(std::env::var_os) else { return };
    let lines = format!(
        "export GIT_DIR={}\nexport GIT_WORK_TREE={}\n",
        model::shell_word(&git_dir.display().to_string()),
        model::shell_word(&workspace.display().to_string()),
    );
    let appended = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut file| std::io::Write::write_all(&mut file, lines.as_bytes()));
    if let Err(error) = appended {
        crate::terminal::error_line(&format!("ringwall: git.pin_env has no effect: {error}"));
    }
}
