//! The texts of a run: its plan, and its report with what was denied, why, and how to allow it.

use std::ffi::OsString;
use std::path::Path;

use run::{Ending, Error, Prepared, Report, Violation};

use super::live::Shown;
use crate::failure::Failure;
use crate::terminal::{self, plain};

/// Violations that are shown in full; the log has all of them.
const MOST_SHOWN: usize = 20;

/// Changed files of the build that are named; the events have all of them.
const MOST_BUILD_FILES: usize = 5;

/// Prints a report to standard error, the reason of the end first.
pub(super) fn print(report: &Report, shown: &Shown) {
    print_ending(report);
    for limit in &report.limits_reached {
        terminal::warning(&format!("the limit `limits.{limit}` was reached"));
    }
    for found in &report.tampering {
        let moved = found.moved_to.as_ref().map_or(String::new(), |to| format!(", moved to {to}"));
        let text = format!("tampering: {}: {}{moved}", found.what, found.path);
        terminal::warning(&plain(&text));
    }
    report.kept.iter().for_each(print_kept);
    for changed in &report.changed {
        let text = format!(
            "{} {}; by the run or by a program outside of it, which cannot be determined",
            changed.path, changed.what
        );
        terminal::warning(&plain(&text));
        if let Some(look) = &changed.look {
            terminal::hint(&plain(&format!("`{look}`")));
        }
    }
    if report.learned.is_none() {
        print_denials(report, shown);
    }
    for path in &report.lost {
        let path = plain(path);
        terminal::warning(&format!("{path} cannot be written; the new version of it is lost"));
    }
    print_build_files(report);
    for (program, remedy) in &report.unseen_programs {
        let program = plain(&program.display().to_string());
        terminal::note(&format!("{program} exists outside the sandbox; {}", plain(remedy)));
    }
    print_suspects(report);
    report.notices.iter().for_each(|notice| terminal::note(&plain(notice)));
    if let Some(learned) = &report.learned {
        terminal::error_line(learned);
    }
}

/// Locks of git that are left behind. A commit waits for them in vain.
fn print_locks(report: &Report) {
    if report.left_locks.is_empty() {
        return;
    }
    let names: Vec<_> = report.left_locks.iter().map(|lock| lock.display().to_string()).collect();
    let words: Vec<_> = names.iter().map(|name| model::shell_word(name)).collect();
    let text = format!("the run left {}; if no git is at work", short(&names.join(", ")));
    terminal::note(&plain(&format!(
        "{text}, remove what is left with `rm -f {}`",
        words.join(" ")
    )));
}

/// What may have made the command fail without a word.
fn print_suspects(report: &Report) {
    for suspect in &report.suspects {
        let what = plain(&short(&suspect.what));
        match &suspect.allow {
            Some(command) => {
                let command = plain(&shell_short(command));
                terminal::note(&format!("{what}; `{command}` allows it"));
            }
            None => terminal::note(&what),
        }
    }
}

/// A command with the home directory as `~`. A shell expands that only outside of quotation marks.
fn shell_short(command: &str) -> String {
    if command.contains(['\'', '"']) { command.to_owned() } else { short(command) }
}

/// Files that were kept aside, a few by their names.
fn print_kept(kept: &run::KeptAside) {
    let here = std::env::current_dir().unwrap_or_default();
    let name = |file: &run::KeptName| {
        let path = Path::new(&file.path);
        plain(&short(&path.strip_prefix(&here).unwrap_or(path).display().to_string()))
    };
    let mut names: Vec<_> = kept.files.iter().take(MOST_BUILD_FILES).map(name).collect();
    let hidden = kept.files.len().saturating_sub(MOST_BUILD_FILES);
    if let more @ 1.. = kept.more + hidden {
        names.push(format!("and {more} more"));
    }
    let why = kept.files.first().map_or("", |file| file.acts.as_str());
    terminal::note(&format!("kept aside, as it could run programs: {}", names.join(", ")));
    let mut lines = vec![("look", kept.show.clone()), ("take", kept.take.clone())];
    if !why.is_empty() {
        lines.insert(0, ("why", format!("{why}, and it was in no commit before the run")));
    }
    terminal::details(&lines);
}

/// Files that act when the user runs the project's own build, a few by their names.
fn print_build_files(report: &Report) {
    let (files, here) = (&report.build_files, std::env::current_dir().unwrap_or_default());
    if files.is_empty() {
        return;
    }
    let name = |file: &run::BuildFileChange| {
        let path = Path::new(&file.path);
        plain(&short(&path.strip_prefix(&here).unwrap_or(path).display().to_string()))
    };
    let mut names: Vec<_> = files.iter().take(MOST_BUILD_FILES).map(name).collect();
    let hidden = files.len().saturating_sub(MOST_BUILD_FILES);
    if let more @ 1.. = report.more_build_files.saturating_add(hidden.try_into().unwrap_or(0)) {
        names.push(format!("and {more} more (`--events` lists them)"));
    }
    let names = names.join(", ");
    let text = format!("changed files that your own commands run: {names}; look at them first");
    terminal::note(&text);
}

fn print_ending(report: &Report) {
    if let Some(violation) = &report.stopped_by {
        terminal::error(&format!("stopped: {}", headline(violation)));
        terminal::details(&details(violation));
    }
    print_locks(report);
    if let Some(limit) = &report.limit {
        terminal::error(&format!("stopped: the limit `limits.{limit}` was reached"));
        terminal::hint(&format!("raise `{limit}` under [limits] in ringwall.toml"));
    }
    if let Some(why) = &report.not_run {
        terminal::error(&plain(why));
        if report.exit == 127 {
            terminal::hint(
                "the sandbox has only the programs of the system and of the usual toolchains; \
                 `ringwall run --plan -- …` lists them, `ringwall grant read DIR` adds more",
            );
        }
    }
    match report.end {
        Ending::Killed => terminal::error("the run was killed from outside"),
        Ending::Cancelled => terminal::error("the run was cancelled"),
        _ => {}
    }
}

/// Denials after which the run went on are shown at its end: while it runs it has the terminal.
fn print_denials(report: &Report, shown: &Shown) {
    let denied: Vec<_> = report.denied.iter().filter(|one| !shown.contains(&key(one))).collect();
    for violation in denied.iter().take(MOST_SHOWN) {
        terminal::error_text(&denial(violation));
    }
    if let more @ 1.. = denied.len().saturating_sub(MOST_SHOWN) {
        terminal::note(&format!("{more} more denials; `ringwall audit tail` lists them"));
    }
}

/// What a violation is known by.
pub(super) fn key(violation: &Violation) -> (&'static str, String) {
    (violation.operation.verb(), violation.path.clone())
}

/// A denial after which the run goes on.
pub(super) fn denial(violation: &Violation) -> String {
    terminal::warning_text(&format!("denied: {}", headline(violation)), &details(violation))
}

/// Who tried what.
fn headline(violation: &Violation) -> String {
    let path = plain(&short(&violation.path));
    format!("{} tried to {} {path}", program(violation), violation.operation.verb())
}

/// Why, how to allow it, and where the rule is.
fn details(violation: &Violation) -> Vec<(&'static str, String)> {
    let Some(reason) = &violation.reason else { return Vec::new() };
    let mut lines = vec![("why", plain(&short(reason.why())))];
    if let Some(instead) = &reason.instead {
        let asks = match instead.asks() {
            Some(what) => {
                format!("     ({}: asks before it grants)", what.trim_start_matches("is a "))
            }
            None => String::new(),
        };
        lines.push(match instead.command() {
            Some(command) => ("allow", plain(&(shell_short(&command) + &asks))),
            None => ("help", plain(&short(&instead.to_string()))),
        });
    }
    lines.push(("rule", format!("{} ({})", reason.rule, reason.origin)));
    lines
}

/// The program by its name, with the script that it runs if it is an interpreter. The rest of a
/// command line can be long and hold secrets; events have all of it.
fn program(violation: &Violation) -> String {
    let argv = &violation.program.argv;
    let file =
        |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let path = violation.program.path.as_ref().map(|path| path.display().to_string());
    let Some(name) = argv.first().and_then(file).or_else(|| path.as_ref().and_then(file)) else {
        return "a program".into();
    };
    let interprets = |start: &&str| name.trim_start_matches('-').starts_with(start);
    let script = argv.get(1).filter(|word| {
        let plain =
            !word.starts_with('-') && word.len() < 80 && !word.contains(char::is_whitespace);
        plain && ["python", "node", "bash", "sh", "ruby", "perl"].iter().any(interprets)
    });
    let words: Vec<_> = [Some(name.as_str()), script.map(String::as_str)]
        .into_iter()
        .flatten()
        .map(plain)
        .collect();
    format!("`{}`", words.join(" "))
}

/// A text with the home directory as `~`, where a path begins.
fn short(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() < 2 { text.to_owned() } else { shortened(text, &format!("{home}/")) }
}

fn shortened(text: &str, home: &str) -> String {
    let mut words = text.split(' ').map(|word| match word.strip_prefix(home) {
        Some(rest) => format!("~/{rest}"),
        None => word.to_owned(),
    });
    let first = words.next().unwrap_or_default();
    words.fold(first, |text, word| text + " " + &word)
}

/// A plan as a table, or as JSON.
pub(super) fn plan(prepared: &Prepared, json: bool) -> String {
    let (plan, left_out) = (prepared.plan.as_ref(), &prepared.variables_left_out);
    if json {
        let mut shown = serde_json::to_value(plan).unwrap_or_default();
        if let Some(object) = shown.as_object_mut() {
            object.insert("environment_left_out".into(), left_out.clone().into());
        }
        return serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n";
    }
    let path = |path: &model::AbsPath| plain(&path.to_string());
    let mut text = format!(
        "workspace {}\nlevel {}\nstarts in {}\nprivate caches {}\n\n",
        path(&plan.workspace),
        plan.level,
        path(&plan.cwd),
        plain(&plan.layer.to_string())
    );
    let row = |piece: &model::Piece| {
        let kind = match &piece.kind {
            model::Kind::Text(_) => "text".to_owned(),
            kind => format!("{kind:?}").to_lowercase(),
        };
        vec![kind, plain(&piece.path.to_string()), plain(&piece.why.to_string())]
    };
    text.push_str(&terminal::table(&plan.pieces.iter().map(row).collect::<Vec<_>>()));
    for published in &plan.publish {
        text.push_str(&format!("\npublish {published}\n"));
    }
    let name = |(name, _): &(OsString, OsString)| name.to_string_lossy().into_owned();
    let names: Vec<_> = plan.environment.iter().map(name).collect();
    text.push_str(&format!("\nenvironment {}\n", plain(&names.join(" "))));
    if !left_out.is_empty() {
        let left_out = plain(&left_out.join(" "));
        text.push_str(&format!(
            "\nnot passed {left_out}\n(`ringwall grant env NAME` passes one)\n"
        ));
    }
    text
}

/// Why there was no run, or no end of it, and what to do about it. What the run did is printed first.
pub(super) fn failure(error: &Error) -> Failure {
    if let Some(report) = &error.report {
        print(report, &Shown::new());
    }
    Failure::from(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_in_the_home_directory_are_shortened() {
        for (text, expected) in [
            ("/home/u/.ssh/key", "~/.ssh/key"),
            ("outside the workspace /home/u/app", "outside the workspace ~/app"),
            ("/opt/home/u/key", "/opt/home/u/key"),
            ("/home/user/key", "/home/user/key"),
            ("ringwall grant read /mnt/x/home/u/f", "ringwall grant read /mnt/x/home/u/f"),
        ] {
            assert_eq!(shortened(text, "/home/u/"), expected);
        }
    }
}
