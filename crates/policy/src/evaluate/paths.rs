//! Paths: deny rules on every reading, then ground to stand on for where it really leads.

use std::path::Path;

use model::{AbsPath, Access, Facts, Level, Origin, PathRef, Reason, Sourced, Verdict};

use super::message;
use crate::needs::readings;
use crate::pattern::Case;
use crate::protected::protecting;
use crate::{Ground, PathRule, Policy};

pub(super) fn judge(
    policy: &Policy,
    ground: &Ground,
    access: Access,
    path: &PathRef,
    facts: &Facts,
) -> Reason {
    let judge = Judge { policy, ground, access, path, facts };
    let mut allowed = None;
    for reading in readings(path) {
        match judge.reading(&reading) {
            refused @ Reason { verdict: Verdict::Ask | Verdict::Deny, .. } => return refused,
            reason => allowed = Some(reason),
        }
    }
    // There is always one reading; were there none, nothing would have been judged.
    allowed.unwrap_or_else(|| judge.refuse("path", &Origin::BuiltIn, "it cannot be read", None))
}

struct Judge<'a> {
    policy: &'a Policy,
    ground: &'a Ground,
    access: Access,
    path: &'a PathRef,
    facts: &'a Facts,
}

impl Judge<'_> {
    /// One way of reading the path. Deny rules see its text and its target; only the target counts
    /// as ground.
    fn reading(&self, reading: &Path) -> Reason {
        let literal = match AbsPath::lexical(reading) {
            Ok(literal) => literal,
            Err(error) => return self.refuse("path", &Origin::BuiltIn, &error.to_string(), None),
        };
        let target = match self.facts.resolved(reading) {
            Ok(target) => target,
            Err(error) => {
                let text = format!("it cannot be resolved: {error}");
                return self.refuse("path", &Origin::BuiltIn, &text, None);
            }
        };
        if self.access == Access::Write
            && let Some(refused) = self.protected(&literal, target)
        {
            return refused;
        }
        if let Some(refused) = self.denied(&literal, target) {
            return refused;
        }
        self.ground(target)
    }

    fn protected(&self, literal: &AbsPath, target: &AbsPath) -> Option<Reason> {
        let candidates = [literal, target];
        if candidates.iter().any(|path| self.is_own(path)) {
            let text = "it belongs to Ringwall itself";
            let instead = Some("only the user can change it, outside the agent".into());
            return Some(self.refuse("protected", &Origin::BuiltIn, text, instead));
        }
        let name = candidates.iter().find_map(|path| protecting(path))?;
        let text = format!("the name `{}` is protected: {}", name.path.join("/"), name.why);
        let instead = "only the user can change it, outside the agent; no grant covers it".into();
        Some(self.refuse("protected", &Origin::BuiltIn, &text, Some(instead)))
    }

    /// Whether a path lies in a place of Ringwall's own, as that is named or as it resolves.
    fn is_own(&self, path: &AbsPath) -> bool {
        self.ground.own_files.iter().any(|own| {
            let resolved = self.facts.resolved(own.as_path());
            path.is_within(own) || resolved.is_ok_and(|resolved| path.is_within(resolved))
        })
    }

    fn denied(&self, literal: &AbsPath, target: &AbsPath) -> Option<Reason> {
        let files = &self.policy.filesystem;
        // What may not be read may not be written either: an edit shows what it changes.
        let hidden = files.deny_read.iter().map(|rule| ("filesystem.deny_read", rule));
        let frozen = files.deny_write.iter().map(|rule| ("filesystem.deny_write", rule));
        let frozen = frozen.filter(|_| self.access == Access::Write);
        let (key, rule) = hidden.chain(frozen).find(|(_, rule)| {
            [literal, target].iter().any(|path| self.covers(&rule.value, path, Case::Fold))
        })?;
        let text = format!("the rule `{}` denies it", rule.value.text());
        let instead = format!("the user can allow it by removing that entry ({})", rule.origin);
        Some(self.refuse(key, &rule.origin, &text, Some(instead)))
    }

    /// Whether the target lies on ground that this access may use.
    fn ground(&self, target: &AbsPath) -> Reason {
        let Self { policy, ground, access, .. } = *self;
        let within = target.is_within(&ground.workspace);
        if within && (access == Access::Read || policy.level.value >= Level::Readwrite) {
            return self.allow("workspace", &Origin::BuiltIn);
        }
        let files = &policy.filesystem;
        let mut grants = vec![("filesystem.allow_write", &files.allow_write)];
        if access == Access::Read {
            grants.push(("filesystem.allow_read", &files.allow_read));
            grants.push(("agent-files", &ground.agent_files));
        }
        for (key, rules) in grants {
            if let Some(rule) = rules.iter().find(|rule| self.allows(rule, target)) {
                return self.allow(key, &rule.origin);
            }
        }
        if let Some(dir) = &policy.quarantine.dir
            && self.allows(dir, target)
        {
            return self.allow("quarantine.dir", &dir.origin);
        }
        if policy.level.value == Level::Full {
            return self.allow("level", &policy.level.origin);
        }
        let instead = Some(message::grant(ground, access, target.as_path()));
        if within {
            let text = format!("the level `{}` lets nothing be written", policy.level.value);
            return self.refuse("level", &policy.level.origin, &text, instead);
        }
        let text = format!("it is outside the workspace {}", ground.workspace);
        self.refuse("workspace", &Origin::BuiltIn, &text, instead)
    }

    fn allows(&self, rule: &Sourced<PathRule>, target: &AbsPath) -> bool {
        self.covers(&rule.value, target, Case::Exact)
    }

    /// Whether a rule covers a path, with the rule's own prefix as written or as it resolves.
    /// An allow rule counts only where it resolves; a deny rule counts in both.
    fn covers(&self, rule: &PathRule, path: &AbsPath, case: Case) -> bool {
        let prefix = rule.prefix(&self.ground.workspace);
        let resolved = prefix.as_ref().and_then(|path| self.facts.resolved(path.as_path()).ok());
        rule.covers(path, resolved, case)
            || (case == Case::Fold && rule.covers(path, prefix.as_ref(), case))
    }

    fn allow(&self, rule: &str, origin: &Origin) -> Reason {
        Reason {
            verdict: Verdict::Allow,
            rule: rule.into(),
            origin: origin.clone(),
            text: format!("{} may be {}", self.path.at.display(), self.access.participle()),
            instead: None,
        }
    }

    fn refuse(&self, rule: &str, origin: &Origin, why: &str, instead: Option<String>) -> Reason {
        let at = self.path.at.display();
        let leads = match self.facts.resolved(&self.path.at) {
            Ok(target) if Some(target) != AbsPath::lexical(&self.path.at).ok().as_ref() => {
                format!(", which leads to {target},")
            }
            _ => String::new(),
        };
        Reason {
            verdict: Verdict::Deny,
            rule: rule.into(),
            origin: origin.clone(),
            text: format!("{} {at}{leads} is refused: {why}", self.access.gerund()),
            instead,
        }
    }
}
