//! What an agent is told at its start: the rules in force, derived from the policy.

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
                "You can read there, and write nothing but what is granted below.".into()
            }
            level => format!(
                "You can read and write there (level {level}). Elsewhere file tools are refused."
            ),
        },
    );
    for place in &setup.context.closed {
        line(&mut text, &format!("{place} belongs to another checkout: never work there."));
    }
    list(&mut text, "You may also read", &policy.filesystem.allow_read);
    list(&mut text, "You may also write", &policy.filesystem.allow_write);
    list(&mut text, "Never read or write", &policy.filesystem.deny_read);
    list(&mut text, "Never write", &policy.filesystem.deny_write);
    quarantine(&mut text, policy);
    line(
        &mut text,
        "Settings of agents, hooks, git configuration and ringwall.toml cannot be written.",
    );
    line(&mut text, "Nobody can answer questions: decide yourself and note what you assumed.");
    line(
        &mut text,
        "A refusal begins with `ringwall:` and says what to do instead. Do that; do not look for a \
         way around it. What only the user can allow, say at the end.",
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
        QuarantineMode::Redirect => "commands that fetch elsewhere are corrected or refused",
        QuarantineMode::Block => "commands that fetch elsewhere are refused",
    };
    line(text, &format!("Content from outside (clones, downloads) must land in {dir}: {how}."));
}

/// Pins git to a linked worktree for every later shell of the session, where the user wants that.
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
