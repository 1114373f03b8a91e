//! [`Sandbox`]: what `ringwall run` would do, asked of the plan that a run would have.

use std::ffi::OsString;

use model::{Access, Action, Reason};
use run::{Answer, Prepared, Request};
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::terminal::{self, Paint, plain};

/// What a run would do with the reads and writes that can be told from a call.
pub(super) enum Sandbox {
    /// There would be no run.
    NotStarted(String),
    /// Its answers, and whether a violation stops it.
    Runs { answers: Vec<(Access, String, Answer)>, action: &'static str },
}

/// Plans a run, and asks it.
pub(super) fn look(args: &ExplainArgs, actions: &[Action]) -> Sandbox {
    let program = args.command.first().and_then(|text| text.split(' ').next());
    let options = args.common.clone().into();
    let request = Request { options, ..Request::new(program.map(OsString::from)) };
    let prepared = match run::prepare(&request) {
        Ok(prepared) => prepared,
        Err(error) => return Sandbox::NotStarted(error.message),
    };
    let ask = |action: &Action| {
        let (access, path) = match action {
            Action::Path { access, path, .. } => (*access, path),
            Action::Place { path, .. } => (Access::Write, path),
            Action::Enter { path, .. } => (Access::Read, path),
            Action::Fetch(fetch) => (Access::Write, &fetch.to),
            _ => return None,
        };
        Some((access, path.at.display().to_string(), prepared.answer(access, &path.at)))
    };
    Sandbox::Runs { answers: actions.iter().filter_map(ask).collect(), action: stops(&prepared) }
}

fn stops(prepared: &Prepared) -> &'static str {
    match prepared.violation_action() {
        run::ViolationAction::Stop => "stop",
        run::ViolationAction::Deny => "deny",
    }
}

impl Sandbox {
    fn denials(&self) -> impl Iterator<Item = (Access, &str, &Reason)> {
        let answers = match self {
            Self::Runs { answers, .. } => answers.as_slice(),
            Self::NotStarted(_) => &[],
        };
        answers.iter().filter_map(|(access, path, answer)| match answer {
            Answer::Denied(reason) => Some((*access, path.as_str(), reason)),
            _ => None,
        })
    }

    fn verdict(&self) -> &'static str {
        match self {
            Self::NotStarted(_) => "not started",
            Self::Runs { action, .. } if self.denials().next().is_some() => action,
            Self::Runs { .. } => "allow",
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let colour = if self.verdict() == "allow" { Paint::Green } else { Paint::Red };
        let mut rows = vec![vec!["sandbox".to_owned(), terminal::paint(self.verdict(), colour)]];
        let mut row = |label: &str, text: &str| rows.push(vec![label.into(), plain(text)]);
        match self {
            Self::NotStarted(why) => row("because", why),
            Self::Runs { answers, .. } => {
                for (access, path, answer) in answers {
                    match answer {
                        Answer::Allowed => {}
                        Answer::Hidden => row("hidden", &format!("{path} does not exist there")),
                        Answer::FailsAsOutside => {
                            row(
                                "fails",
                                &format!("{} {path}, as it does outside", access.gerund()),
                            );
                        }
                        Answer::Denied(reason) => {
                            let rule = format!("[rule {}, {}]", reason.rule, reason.origin);
                            row("because", &format!("{} {rule}", reason.text));
                            reason.instead.iter().for_each(|way| row("instead", &way.to_string()));
                        }
                    }
                }
            }
        }
        let note = "of a command, only what its text says is known before it runs";
        rows.push(vec!["note".into(), terminal::paint(note, Paint::Dim)]);
        rows
    }

    pub(super) fn as_json(&self) -> Value {
        let because: Vec<_> = self
            .denials()
            .map(|(access, path, reason)| {
                json!({
                    "access": access,
                    "path": path,
                    "rule": reason.rule,
                    "file": reason.origin.file(),
                    "line": reason.origin.line(),
                    "text": reason.text,
                    "instead": reason.instead,
                })
            })
            .collect();
        let error = match self {
            Self::NotStarted(why) => Some(why),
            Self::Runs { .. } => None,
        };
        json!({"verdict": self.verdict(), "because": because, "error": error})
    }
}
