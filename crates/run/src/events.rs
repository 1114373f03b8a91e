//! [`Event`]: what happens in a run, as values. Serialized, each is one line of `--events`.

use std::sync::Arc;

use crate::build_files::BuildFileChange;
use crate::kept::{Kept, KeptFile};
use model::{Origin, Reason, Remedy, Rule};
use sandbox::{Available, Operation, Program, Usage};
use serde::{Deserialize, Serialize};

/// One event. Fields are only ever added.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The sandbox is in place and was tested from inside; the command is about to run.
    Started {
        /// The run.
        run: String,
        /// The version of Ringwall.
        ringwall: String,
        /// The command and its arguments.
        command: Vec<String>,
        /// What enforces, and what attributes.
        #[serde(rename = "wall")]
        mechanism: Available,
        /// What was tried from inside, and whether it was denied.
        self_test: Vec<(String, bool)>,
        /// What was granted and does not exist on this machine.
        missing: Vec<String>,
        /// The plan of the run.
        plan: Arc<model::Plan>,
        /// `stop` or `deny`.
        violation_action: String,
        /// The digest of the configuration.
        config: String,
    },
    /// Something was denied.
    Violation {
        /// The run.
        run: String,
        /// What, by which program, and why.
        #[serde(flatten)]
        violation: Violation,
        /// What enforces, and what attributes.
        #[serde(rename = "wall")]
        mechanism: Mechanism,
    },
    /// A connection to a granted host ended.
    Connection {
        /// The run.
        run: String,
        /// The host by name.
        host: String,
        /// The port.
        port: u16,
        /// The address that was connected to.
        address: String,
        /// How the client connected.
        route: String,
        /// Bytes sent.
        sent: u64,
        /// Bytes received.
        received: u64,
        /// How long it was open.
        seconds: f64,
        /// The client.
        program: Program,
    },
    /// A port of this machine leads to a server inside from now on.
    Published {
        /// The run.
        run: String,
        /// The address and the port outside.
        address: String,
        /// The port inside.
        inside: u16,
    },
    /// A program listens on a port inside that nothing outside can reach.
    Listening {
        /// The run.
        run: String,
        /// The address and the port inside.
        address: String,
        /// The program.
        program: Program,
    },
    /// The proxy failed: nothing on the network can be reached any more.
    NetworkClosed {
        /// The run.
        run: String,
        /// What failed.
        why: String,
    },
    /// A limit was reached.
    Limit {
        /// The run.
        run: String,
        /// The key under `[limits]`.
        limit: String,
    },
    /// A protected name appeared although nothing may create one.
    Tampering {
        /// The run.
        run: String,
        /// What, and where it is now.
        #[serde(flatten)]
        tampering: Tampering,
    },
    /// The run wrote files with protected names that were in no commit of the user's. They are kept
    /// elsewhere, and what was there before is there again.
    KeptAside {
        /// The run.
        run: String,
        /// What, and how to look at it.
        #[serde(flatten)]
        kept: KeptAside,
    },
    /// The run changed files that act when the user runs the project's own build.
    BuildFilesChanged {
        /// The run.
        run: String,
        /// Which, and who acts on them; what existed before comes first.
        files: Vec<BuildFileChange>,
        /// How many more there are.
        more: u64,
    },
    /// Something protected is not as it was, and it cannot be determined who changed it: the run, or
    /// a program on the host.
    Changed {
        /// The run.
        run: String,
        /// What, and how to look at it.
        #[serde(flatten)]
        changed: Changed,
    },
    /// The run is over and nothing of it is left.
    Stopped {
        /// The run.
        run: String,
        /// The exit status.
        exit: u8,
        /// How the run ended.
        end: Ending,
        /// The signal that ended the command, if one did.
        signal: Option<i32>,
        /// What the run used.
        usage: Option<Usage>,
        /// Which limits a control group enforced, and which the limits of each process.
        limited_by: String,
        /// How many violations of each class there were.
        violations: Counts,
        /// In a linked worktree: whether the run left all other references as they were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other_references_unchanged: Option<bool>,
        /// In a linked worktree: other references that the run may have moved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moved_references: Vec<String>,
        /// In a linked worktree: references that programs on the host moved meanwhile.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moved_by_host: Vec<String>,
        /// How long the run took.
        seconds: f64,
    },
    /// There was no run.
    Refused {
        /// The run.
        run: String,
        /// The exit status.
        exit: u8,
        /// Why.
        error: String,
        /// What this machine lacks.
        lacking: Vec<sandbox::Lack>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The command exited.
    Exited,
    /// A violation stopped it.
    Violation,
    /// A limit stopped it.
    Limit,
    /// The command could not be started.
    NotRun,
    /// The caller of the library stopped it.
    Cancelled,
    /// It was killed from outside.
    Killed,
    /// The sandbox failed while the command ran.
    Failed,
}

/// What enforces the sandbox, and what finds the path of a denial. Part of every violation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Mechanism {
    /// What enforces.
    pub enforcement: sandbox::Enforcement,
    /// What attributes a denial to a path and a program.
    pub attribution: sandbox::Attribution,
}

/// An attempt that was denied.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "ViolationFields", from = "ViolationFields")]
pub struct Violation {
    /// How much it counts.
    pub class: Class,
    /// What was tried.
    pub operation: Operation,
    /// The path, or the address.
    pub path: String,
    /// Who tried.
    pub program: Program,
    /// Why it was denied, and what would allow it.
    pub reason: Option<Reason>,
}

/// A violation as events spell it.
#[derive(Serialize, Deserialize)]
struct ViolationFields {
    class: Class,
    operation: Operation,
    path: String,
    program: Program,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The bare command of the remedy, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<String>,
}

impl From<Violation> for ViolationFields {
    fn from(violation: Violation) -> Self {
        let Violation { class, operation, path, program, reason } = violation;
        let (rule, origin) = reason.as_ref().map(|it| (it.rule, it.origin.clone())).unzip();
        let text = reason.as_ref().map(|reason| reason.text.clone());
        // A probe has no text, only its rule.
        let text = text.filter(|text| !text.is_empty());
        let remedy = reason.and_then(|reason| reason.instead);
        let allow = remedy.as_ref().and_then(Remedy::proposed);
        let remedy = remedy.map(|remedy| remedy.to_string());
        Self { class, operation, path, program, rule, origin, text, remedy, allow }
    }
}

impl From<ViolationFields> for Violation {
    fn from(fields: ViolationFields) -> Self {
        let ViolationFields { class, operation, path, program, rule, origin, text, remedy, allow } =
            fields;
        let origin = origin.unwrap_or(Origin::BuiltIn);
        let reason = rule.map(|rule| Reason {
            instead: remedy.map(|sentence| Remedy::Quoted { command: allow, sentence }),
            ..Reason::deny(rule, origin, text.unwrap_or_default())
        });
        Self { class, operation, path, program, reason }
    }
}

/// How much an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Hidden and logged.
    Probe,
    /// Denied, and the run went on.
    Deny,
    /// Denied, and the run ended.
    Stop,
}

/// How many violations of each class there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Hidden and logged.
    pub probe: u64,
    /// Denied.
    pub deny: u64,
    /// Denied, and the end of the run.
    pub stop: u64,
}

/// A protected name that appeared, or something else that would act later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tampering {
    /// Where it appeared.
    pub path: String,
    /// Where it is now, if it could be moved.
    pub moved_to: Option<String>,
    /// What it is.
    pub what: String,
}

/// Files that were kept aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAside {
    /// Where the run left them, and who would act on them; at most 1,000.
    pub files: Vec<KeptName>,
    /// How many more there are.
    pub more: usize,
    /// The command that shows them.
    pub show: String,
    /// The command that puts them where the run left them.
    pub take: String,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptName {
    /// Where the run left it.
    pub path: String,
    /// Who would act on it.
    pub acts: String,
}

impl KeptAside {
    pub(crate) fn new(kept: &Kept) -> Self {
        let name = |file: &KeptFile| KeptName {
            path: file.path.display().to_string(),
            acts: file.acts.clone(),
        };
        let number = kept.number;
        Self {
            files: kept.files.iter().take(MOST_KEPT_NAMES).map(name).collect(),
            more: kept.files.len().saturating_sub(MOST_KEPT_NAMES),
            show: format!("ringwall kept show {number}"),
            take: format!("ringwall kept take {number}"),
        }
    }
}

/// Files that are named in one event.
const MOST_KEPT_NAMES: usize = 1000;

/// Something protected that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Where, or which reference.
    pub path: String,
    /// What happened to it.
    pub what: String,
    /// The command that shows the difference, or that undoes the change.
    pub look: Option<String>,
}
