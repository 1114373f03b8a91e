//! The answer to a call: [`Verdict`], [`Reason`], [`Decision`].

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Origin, Remedy, Rule};

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

/// Why one action gets its verdict: the rule, where it is set, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What this reason alone would give.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Rule,
    /// Where the rule is set.
    pub origin: Origin,
    /// What was tried and why it gets this verdict, as one sentence.
    pub text: String,
    /// The cause alone, for a reader who already knows what was tried; none where `text` is the cause.
    #[serde(skip)]
    pub cause: Option<String>,
    /// What to do instead, or what would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<Remedy>,
}

impl Reason {
    /// A reason to allow.
    pub fn allow(rule: Rule, origin: Origin, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { verdict: Verdict::Allow, rule, origin, text, cause: None, instead: None }
    }

    /// A reason to deny.
    pub fn deny(rule: Rule, origin: Origin, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Deny, ..Self::allow(rule, origin, text) }
    }

    /// A reason to deny for this cause. `tried` is the first half of the sentence.
    pub fn deny_because(rule: Rule, origin: Origin, tried: &str, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        let text = format!("{tried}: {cause}");
        Self { cause: Some(cause), ..Self::deny(rule, origin, text) }
    }

    /// The same with a way out.
    #[must_use]
    pub fn with(self, remedy: Remedy) -> Self {
        Self { instead: Some(remedy), ..self }
    }

    /// The cause alone where there is one, else the whole sentence.
    pub fn why(&self) -> &str {
        self.cause.as_deref().unwrap_or(&self.text)
    }
}

/// A part of a call that cannot be known before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The part's text.
    pub part: String,
    /// Why it cannot be known.
    pub why: String,
}

/// The corrected call: one input field with a new value, every other field as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The input field to replace.
    pub field: String,
    /// Its corrected value.
    pub value: String,
    /// What goes to quarantine instead of where it would have gone.
    pub moves: Vec<Moved>,
}

/// A download that a corrected call sends to quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The command.
    pub by: String,
    /// Where the content would have gone.
    pub from: PathBuf,
    /// Where it goes now.
    pub to: PathBuf,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, from, to } = self;
        write!(f, "redirected {by} to quarantine: {} -> {}", from.display(), to.display())
    }
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

    /// The same decision with another corrected text. A call that is not corrected stays as it is.
    #[must_use]
    pub fn redirected(self, value: String) -> Self {
        let redirect = self.redirect.map(|redirect| Redirect { value, ..redirect });
        Self { redirect, ..self }
    }

    /// A denial that names the corrected text instead of sending it.
    #[must_use]
    pub fn corrected_by(self, value: &str) -> Self {
        let text = "the command cannot run unchanged";
        let reason = Reason::deny(Rule::Redirect, Origin::BuiltIn, text);
        let decision = self.and(reason.with(Remedy::Run(value.into())));
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
        Reason { verdict, ..Reason::deny(Rule::Workspace, Origin::BuiltIn, "t") }
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

    #[test]
    fn a_corrected_text_stays_in_its_field() {
        let redirect = Redirect { field: "cmd".into(), value: "a".into(), moves: Vec::new() };
        let decision = Decision::new(vec![reason(Verdict::Allow)], vec![], Some(redirect));
        let decision = decision.redirected("b".into());
        let redirect = decision.redirect().unwrap();
        assert_eq!((&*redirect.field, &*redirect.value), ("cmd", "b"));
    }

    #[test]
    fn a_cause_ends_the_sentence_and_can_be_read_alone() {
        let reason = Reason::deny_because(Rule::Level, Origin::BuiltIn, "x is denied", "of y");
        assert_eq!((&*reason.text, reason.why()), ("x is denied: of y", "of y"));
        assert_eq!(Reason::deny(Rule::Level, Origin::BuiltIn, "x").why(), "x");
    }
}
