//! What was requested of the machine, and what is available.

use std::borrow::Cow;

pub use model::{Attribution, Enforcement};
use serde::{Deserialize, Serialize};

/// What is requested. Less than the best is for machines that have no more, and for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested {
    /// The strongest enforcement to try.
    pub enforcement: Enforcement,
    /// The best attribution to try.
    pub attribution: Attribution,
}

impl Default for Requested {
    fn default() -> Self {
        Self { enforcement: Enforcement::Namespaces, attribution: Attribution::Tripwire }
    }
}

/// What is available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Available {
    /// What enforces the sandbox.
    pub enforcement: Enforcement,
    /// What attributes denials.
    pub attribution: Attribution,
    /// The Landlock ABI version, zero for none.
    pub landlock: i32,
    /// What the machine lacks, each with its remedy.
    pub lacking: Vec<Lack>,
}

/// Something that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// A stable name.
    pub name: Cow<'static, str>,
    /// What is missing, and why.
    pub what: String,
    /// What would fix it.
    pub remedy: String,
}

/// How the forbidden acts went that were tried from inside, before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// What was tried, and whether it was denied.
    pub tried: Vec<(String, bool)>,
}

impl SelfTest {
    /// The acts that were not denied.
    pub fn succeeded(&self) -> impl Iterator<Item = &str> {
        self.tried.iter().filter(|(_, denied)| !denied).map(|(what, _)| what.as_str())
    }

    /// Whether acts were tried, and all of them were denied.
    pub fn holds(&self) -> bool {
        !self.tried.is_empty() && self.succeeded().next().is_none()
    }
}
