//! A decision that an agent cannot carry out becomes a denial. It never gets less strict.

use model::{Decision, Event, Mode, Origin, Reason, Remedy, Rule, Verdict};

use crate::Agent;

/// The decision as this agent can carry it out.
///
/// A question that no one can answer is denied. A corrected call that the agent would ignore is
/// denied, and the message has the correction; otherwise the original would run.
pub fn degrade(agent: &Agent, event: &Event, decision: Decision) -> Decision {
    if decision.verdict() == Verdict::Deny {
        return decision;
    }
    if let Some(redirect) = decision.redirect()
        && !agent.caps.rewrite
    {
        let remedy = Remedy::Run(redirect.value.clone());
        let text = format!("{} does not accept a corrected call", agent.title);
        return decision.and(Reason::deny(Rule::Redirect, Origin::BuiltIn, text).with(remedy));
    }
    let cannot_ask = event.mode == Mode::NeverAsks || !agent.caps.ask;
    if decision.verdict() == Verdict::Ask && cannot_ask {
        let text = "this needs a person's consent, and no one can be asked";
        let remedy = Remedy::advice("do it another way, or continue without it");
        return decision.and(Reason::deny(Rule::Ask, Origin::BuiltIn, text).with(remedy));
    }
    decision
}

#[cfg(test)]
mod tests {
    use model::{EventKind, Opaque, Redirect};
    use proptest::prelude::*;

    use super::*;
    use crate::{ALL, Caps};

    fn reason(verdict: Verdict) -> Reason {
        Reason { verdict, ..Reason::deny(Rule::Workspace, Origin::BuiltIn, "t") }
    }

    proptest! {
        #[test]
        fn degrading_only_gets_stricter(
            verdicts in prop::collection::vec(0..3_u8, 0..4),
            redirects in any::<bool>(),
            rewrite in any::<bool>(),
            ask in any::<bool>(),
            never in any::<bool>(),
        ) {
            let verdict = |n| [Verdict::Allow, Verdict::Ask, Verdict::Deny][usize::from(n)];
            let reasons = verdicts.into_iter().map(|n| reason(verdict(n))).collect();
            let redirect = redirects.then(|| Redirect {
                field: "command".into(),
                value: "x".into(),
                moves: Vec::new(),
            });
            let opaque = vec![Opaque { part: "p".into(), why: "w".into() }];
            let decision = Decision::new(reasons, opaque, redirect);
            let template = ALL[0];
            let agent = Agent { caps: Caps { rewrite, ask }, ..copy(template) };
            let mode = if never { Mode::NeverAsks } else { Mode::Asks };
            let kind = EventKind::Other("x".into());
            let event = Event { session: String::new(), cwd: None, mode, kind };
            let before = decision.verdict();
            let after = degrade(&agent, &event, decision);
            prop_assert!(after.verdict() >= before);
            prop_assert!(!(after.verdict() == Verdict::Ask && (never || !ask)));
            prop_assert!(rewrite || after.redirect().is_none() || after.verdict() == Verdict::Deny);
        }
    }

    fn copy(agent: &Agent) -> Agent {
        Agent { ..*agent }
    }
}
