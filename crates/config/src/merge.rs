//! Merges layers into one policy. What an untrusted layer widens is left out and reported.

use std::fmt;

use facts::Places;
use model::{AbsPath, Origin, Sourced};
use policy::{PathRule, Policy, QuarantineMode};

use crate::diagnose::alternatives;
use crate::file::REMOVED_KEYS;
use crate::keys::KEYS;
use crate::layer::Layer;
use crate::load::{Aliases, Problem, Selection, Warning};
use crate::quarantine;
use crate::setting::Incoming;

/// A line that would allow more than the layers below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widening {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Where it is.
    pub origin: Origin,
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} = {}", self.origin, self.key, self.value)
    }
}

pub(crate) struct Merge<'a> {
    places: &'a Places,
    policy: Policy,
    warnings: Vec<Warning>,
    ignored: Vec<Widening>,
    problems: Vec<Problem>,
}

pub(crate) struct Merged {
    pub(crate) policy: Policy,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) ignored: Vec<Widening>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(places: &'a Places) -> Self {
        Self {
            places,
            policy: Policy::built_in(),
            warnings: Vec::new(),
            ignored: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Result<Merged, Vec<Problem>> {
        if self.problems.is_empty() {
            Ok(Merged { policy: self.policy, warnings: self.warnings, ignored: self.ignored })
        } else {
            Err(self.problems)
        }
    }

    /// Clears the list of what is ignored.
    pub(crate) fn forget_ignored(&mut self) {
        self.ignored.clear();
    }

    /// Applies the variables of the older system, which every file overrides. A project's settings
    /// can set them, so a directory is accepted only where the agent gains nothing of value.
    pub(crate) fn aliases(&mut self, aliases: &Aliases, workspace: &AbsPath) {
        if let Some((name, value)) = &aliases.quarantine_dir {
            let origin = Origin::Environment(name.clone());
            match quarantine::from_variable(value, self.places, workspace) {
                Ok(dir) => {
                    let value = PathRule::literal(&dir);
                    self.policy.quarantine.dir = Some(Sourced { value, origin });
                }
                Err(why) => {
                    let text = format!("quarantine directory `{value}` is ignored: {why}");
                    self.warnings.push(Warning { origin: origin.clone(), text });
                    let (key, value) = ("quarantine.dir".to_owned(), value.clone());
                    self.ignored.push(Widening { key, value, origin });
                }
            }
        }
        if let Some((name, value)) = &aliases.quarantine_mode {
            let origin = Origin::Environment(name.clone());
            match value.as_str() {
                "rewrite" | "redirect" => {
                    self.policy.quarantine.mode =
                        Sourced { value: QuarantineMode::Redirect, origin };
                }
                "block" => {
                    self.policy.quarantine.mode = Sourced { value: QuarantineMode::Block, origin };
                }
                _ => self.problems.push(Problem {
                    origin,
                    text: format!("unknown mode `{value}`"),
                    hint: Some("expected `rewrite` or `block`".into()),
                }),
            }
        }
    }

    pub(crate) fn layer(&mut self, layer: &Layer) {
        self.header(layer);
        let mut from = Incoming {
            layer,
            places: self.places,
            ignored: &mut self.ignored,
            problems: &mut self.problems,
        };
        for key in KEYS {
            (key.merge)(&layer.file, &mut self.policy, key.name, &mut from);
        }
    }

    /// Applies what flags chose, which overrides every file.
    pub(crate) fn select(&mut self, selection: &Selection) {
        if let Some(name) = &selection.phase {
            match self.policy.phases.get(name) {
                Some(phase) => {
                    self.policy.level = phase.level.clone();
                    self.policy.filesystem.allow_write.extend(phase.allow_write.clone());
                }
                None => {
                    let known: Vec<_> = self.policy.phases.keys().map(String::as_str).collect();
                    self.problems.push(Problem {
                        origin: Origin::Flag("--phase".into()),
                        text: format!("unknown phase `{name}`"),
                        hint: Some(format!("expected {}", alternatives(&known))),
                    });
                }
            }
        }
        if let Some(level) = selection.level {
            self.policy.level = Sourced { value: level, origin: Origin::Flag("--level".into()) };
        }
    }

    fn header(&mut self, layer: &Layer) {
        let file = &layer.file;
        if let Some(version) = &file.version
            && *version.get_ref() != 1
        {
            self.problems.push(Problem {
                origin: layer.origin(&version.span()),
                text: format!("version {} is not supported", version.get_ref()),
                hint: Some("write `version = 1`".into()),
            });
        }
        let removed = [
            &file.agent_forbidden_tools,
            &file.sandbox_escalation_policy,
            &file.sandbox_approved_escalations,
        ];
        for (key, value) in REMOVED_KEYS.iter().zip(removed) {
            if let Some(value) = value {
                let text = format!("`{key}` was removed and is ignored");
                self.warnings.push(Warning { origin: layer.origin(&value.span()), text });
            }
        }
    }
}
