//! The answer to a call: [`Verdict`], [`Reason`], [`Decision`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Origin;

/// What a call gets. Ordered: the strictest of several wins.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Runs as it is.
    Allow,
    /// Runs only if a person agrees.
    Ask,
    /// Does not run.
    Deny,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Why one action gets its verdict: the rule, where it stands, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What this reason alone would give.
    pub verdict: Verdict,
    /// The rule's name: a config key, or the name of a built-in rule.
    pub rule: String,
    /// Where the rule stands.
    pub origin: Origin,
    /// What was tried and why it gets this verdict, as one sentence.
    pub text: String,
    /// What to do instead, or the command that would allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// A part of a call that nobody can know before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The part's text.
    pub part: String,
    /// Why it cannot be known.
    pub why: String,
}

/// The corrected call: one input field with a new value, every other field as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The input field to replace.
    pub field: String,
    /// Its corrected value.
    pub value: String,
}

/// A verdict with its reasons, and perhaps a corrected call.
///
/// The verdict is always the strictest of the reasons, so the two cannot disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    verdict: Verdict,
    reasons: Vec<Reason>,
    opaque: Vec<Opaque>,
    redirect: Option<Redirect>,
}

impl Decision {
    /// Builds a decision; reasons are kept strictest first.
    pub fn new(mut reasons: Vec<Reason>, opaque: Vec<Opaque>, redirect: Option<Redirect>) -> Self {
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
        let verdict = reasons.first().map_or(Verdict::Allow, |reason| reason.verdict);
        Self { verdict, reasons, opaque, redirect }
    }

    /// A decision for one reason.
    pub fn single(reason: Reason) -> Self {
        Self::new(vec![reason], Vec::new(), None)
    }

    /// The same decision with one more reason: it can only get stricter.
    #[must_use]
    pub fn and(self, reason: Reason) -> Self {
        let mut reasons = self.reasons;
        reasons.push(reason);
        Self::new(reasons, self.opaque, self.redirect)
    }

    /// The same decision with this corrected text.
    #[must_use]
    pub fn redirected(self, value: String) -> Self {
        let field = self.redirect.map_or_else(|| "command".to_owned(), |redirect| redirect.field);
        Self { redirect: Some(Redirect { field, value }), ..self }
    }

    /// A refusal that names the corrected text instead of sending it.
    #[must_use]
    pub fn corrected_by(self, value: &str) -> Self {
        let reason = Reason {
            verdict: Verdict::Deny,
            rule: "redirect".into(),
            origin: Origin::BuiltIn,
            text: "the command must not run as it is".into(),
            instead: Some(format!("run this instead: {value}")),
        };
        let decision = self.and(reason);
        Self { redirect: None, ..decision }
    }

    /// The strictest verdict of all reasons.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// All reasons, strictest first.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The reasons that decided: those with the decision's own verdict.
    pub fn deciding(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().take_while(|reason| reason.verdict == self.verdict)
    }

    /// What could not be known.
    pub fn opaque(&self) -> &[Opaque] {
        &self.opaque
    }

    /// The corrected call, if there is one.
    pub fn redirect(&self) -> Option<&Redirect> {
        self.redirect.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(verdict: Verdict) -> Reason {
        Reason {
            verdict,
            rule: "r".into(),
            origin: Origin::BuiltIn,
            text: "t".into(),
            instead: None,
        }
    }

    #[test]
    fn the_strictest_reason_wins() {
        let decision = Decision::new(
            vec![reason(Verdict::Allow), reason(Verdict::Deny), reason(Verdict::Ask)],
            vec![],
            None,
        );
        assert_eq!(decision.verdict(), Verdict::Deny);
        assert_eq!(decision.deciding().count(), 1);
    }

    #[test]
    fn adding_a_reason_never_loosens() {
        let decision = Decision::single(reason(Verdict::Deny)).and(reason(Verdict::Allow));
        assert_eq!(decision.verdict(), Verdict::Deny);
    }
}
