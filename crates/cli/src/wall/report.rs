//! What a run says at its end: what was attempted, what is missing, what would allow it.

use model::shell_word;
use sandbox::{End, Lack, Operation, Outcome, WallError};

use super::events::Violation;
use crate::failure::Failure;
use crate::terminal::{error_line, plain};

/// The exit status of a run that a violation ended.
pub(crate) const STOPPED: u8 = 77;
/// The exit status of a run that a limit ended: as `timeout` has it.
const LIMIT: u8 = 124;

/// Says how a run ended, and gives its exit status and a word for the end.
pub(crate) fn ended(outcome: &Outcome, violation: Option<&Violation>) -> (u8, &'static str) {
    match &outcome.end {
        End::Exited { code, .. } => (*code, "exited"),
        End::Violation => {
            if let Some(violation) = violation {
                error_line(&format!("ringwall: stopped by a violation: {}", refusal(violation)));
            }
            (STOPPED, "violation")
        }
        End::Limit(limit) => {
            error_line(&format!("ringwall: stopped: the limit `limits.{limit}` is reached"));
            error_line(&format!("hint: raise `{limit}` under [limits] in ringwall.toml"));
            (LIMIT, "limit")
        }
        End::NotRun(failed) => {
            let missing = failed.errno == Some(rustix::io::Errno::NOENT.raw_os_error());
            error_line(&format!("error: {failed}"));
            if missing {
                error_line(
                    "hint: inside the wall only the system's and the usual toolchains' programs \
                     are there; `ringwall run --plan -- …` lists them, `ringwall grant read DIR` \
                     adds one",
                );
            }
            (if missing { 127 } else { 126 }, "not_run")
        }
        End::Lost => {
            error_line("ringwall: the run was killed from outside");
            (137, "killed")
        }
    }
}

/// An attempt in full: who tried what, which rule refused it, and what would allow it.
pub(crate) fn refusal(violation: &Violation) -> String {
    let program = &violation.program;
    let words: Vec<_> = program.argv.iter().map(|word| shown(word)).collect();
    let mut command = words.join(" ");
    if command.is_empty() {
        command = "a program".into();
    } else if command.chars().count() > 200 {
        command = command.chars().take(200).chain("…".chars()).collect();
    }
    let path = program.path.as_ref().map_or(String::new(), |path| format!(", {}", path.display()));
    let mut text = format!(
        "`{command}` (pid {}{path}) tried to {} {}",
        program.pid,
        verb(violation.operation),
        plain(&violation.path)
    );
    if let Some(why) = &violation.text {
        text.push_str(&format!(
            "\n  missing: {} permission; {}",
            permission(violation.operation),
            plain(why)
        ));
    }
    if let (Some(rule), Some(origin)) = (&violation.rule, &violation.origin) {
        text.push_str(&format!("\n  rule: {rule} ({origin})"));
    }
    if let Some(remedy) = &violation.remedy {
        text.push_str(&format!("\n  remedy: {}", plain(remedy)));
    }
    text
}

/// A word of a command line. A script in it is not for the terminal: it can be long, and hold what
/// should not be shown. Events have all of it.
fn shown(word: &str) -> String {
    let script = word.chars().count() > 100 || word.contains([';', '|', '&', '\n', '<', '>', '$']);
    if script { "…".into() } else { shell_word(word) }
}

fn permission(operation: Operation) -> &'static str {
    match operation {
        Operation::Connect | Operation::LookUp => "network",
        operation if operation.writes() => "write",
        _ => "read",
    }
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Look => "look at",
        Operation::Read => "read",
        Operation::List => "list",
        Operation::Execute => "run",
        Operation::Write => "write",
        Operation::Create => "create or write",
        Operation::MakeDirectory => "make the directory",
        Operation::MakeNode => "make the node",
        Operation::SymbolicLink => "make the link",
        Operation::Link => "link",
        Operation::Remove => "remove",
        Operation::Rename => "rename",
        Operation::Truncate => "truncate",
        Operation::ChangeMode => "change the permissions of",
        Operation::ChangeOwner => "change the owner of",
        Operation::ChangeTimes => "change the times of",
        Operation::ChangeAttributes => "change the attributes of",
        Operation::Connect => "connect to",
        Operation::LookUp => "look up",
    }
}

/// Why there is no wall, and what would mend it.
pub(crate) fn not_built(error: &WallError) -> Failure {
    let failure = Failure::unavailable(format!("the wall cannot be built: {error}"));
    let lacking = match error {
        WallError::Failed { diagnosis, .. } | WallError::TooWeak { diagnosis, .. } => diagnosis,
        WallError::DoesNotHold(_) => {
            return failure
                .hint("nothing was run; `ringwall doctor` shows which part does not hold");
        }
    };
    match lacking.as_slice() {
        [] => failure,
        lacking => failure.hint(lacking.iter().map(lack).collect::<Vec<_>>().join("\nhint: ")),
    }
}

fn lack(lack: &Lack) -> String {
    format!("{} ({}); remedy: {}", lack.what, lack.name, lack.remedy)
}
