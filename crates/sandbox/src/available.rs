//! What was asked of the machine, and what it really gives.

use std::borrow::Cow;

pub use model::{Attribution, Enforcement};
use serde::{Deserialize, Serialize};

/// What to ask for. Less than the best is for machines that have no more, and for tests.
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

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Available {
    /// What holds the wall.
    pub enforcement: Enforcement,
    /// What names what was refused.
    pub attribution: Attribution,
    /// The version of Landlock, zero for none.
    pub landlock: i32,
    /// What is less than it could be, each with its remedy.
    pub lacking: Vec<Lack>,
}

/// Something that this machine does not give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// A stable name.
    pub name: Cow<'static, str>,
    /// What is missing, and why.
    pub what: String,
    /// What would mend it.
    pub remedy: String,
}

/// How forbidden acts went that were tried from inside, before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// What was tried, and whether it was refused.
    pub tried: Vec<(String, bool)>,
}

impl SelfTest {
    /// The acts that were not refused.
    pub fn succeeded(&self) -> impl Iterator<Item = &str> {
        self.tried.iter().filter(|(_, refused)| !refused).map(|(what, _)| what.as_str())
    }

    /// Whether everything was tried and refused.
    pub fn holds(&self) -> bool {
        !self.tried.is_empty() && self.succeeded().next().is_none()
    }
}
