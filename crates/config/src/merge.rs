//! Layers become one policy, and what an untrusted layer widens is set aside.

use std::fmt;
use std::path::Path;

use facts::Places;
use model::{AbsPath, ByteSize, DomainRule, Origin, Sourced};
use policy::{PathRule, Phase, Policy, QuarantineMode};
use toml::Spanned;

use crate::file::{File, REMOVED_KEYS};
use crate::layer::{Layer, Standing};
use crate::load::{Aliases, Problem, Selection, Warning};
use crate::quarantine;

/// A line that would allow more than the layers below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widening {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Where it stands.
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

/// Whether a higher value of a key allows more, or less.
#[derive(Clone, Copy)]
enum Wider {
    Higher,
    Lower,
}

impl Wider {
    fn widens<T: PartialOrd>(self, old: &T, new: &T) -> bool {
        match self {
            Self::Higher => new > old,
            Self::Lower => new < old,
        }
    }
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

    /// Starts a new list of what is ignored.
    pub(crate) fn forget_ignored(&mut self) {
        self.ignored.clear();
    }

    /// Variables of the older system stand below every file. A project's settings can set them, so
    /// a directory counts only where nothing is lost by it.
    pub(crate) fn aliases(&mut self, aliases: &Aliases, workspace: &AbsPath) {
        if let Some((name, value)) = &aliases.quarantine_dir {
            let origin = Origin::Environment(name.clone());
            match quarantine::from_variable(value, self.places, workspace) {
                Ok(dir) => {
                    let value = PathRule::literal(&dir);
                    self.policy.quarantine.dir = Some(Sourced { value, origin });
                }
                Err(why) => {
                    let text = format!("`{value}` is ignored as a quarantine: {why}");
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
                    text: format!("`{value}` is no mode"),
                    hint: Some("write `rewrite` or `block`".into()),
                }),
            }
        }
    }

    pub(crate) fn layer(&mut self, layer: &Layer) {
        let file = &layer.file;
        self.header(layer, file);
        self.single(layer, "level", file.level.as_ref(), Wider::Higher, |p| &mut p.level);
        self.phases(layer, file);
        self.paths(layer, file);
        self.hosts(layer, file);
        self.lists(layer, file);
        self.quarantine(layer, file);
        self.limits(layer, file);
        let guard = &file.guard;
        self.single(layer, "guard.on_unknown", guard.on_unknown.as_ref(), Wider::Lower, |p| {
            &mut p.guard.on_unknown
        });
        self.single(layer, "guard.on_error", guard.on_error.as_ref(), Wider::Lower, |p| {
            &mut p.guard.on_error
        });
        self.single(layer, "violation.action", file.violation.action.as_ref(), Wider::Lower, |p| {
            &mut p.violation.action
        });
        let lookups = file.violation.lookups.as_ref();
        self.single(layer, "violation.lookups", lookups, Wider::Lower, |p| {
            &mut p.violation.lookups
        });
        self.single(layer, "audit.on_failure", file.audit.on_failure.as_ref(), Wider::Lower, |p| {
            &mut p.audit.on_failure
        });
        self.single(layer, "git.pin_env", file.git.pin_env.as_ref(), Wider::Lower, |p| {
            &mut p.git.pin_env
        });
        let minimum = file.confinement.minimum.as_ref();
        self.single(layer, "confinement.minimum", minimum, Wider::Lower, |p| {
            &mut p.confinement.minimum
        });
    }

    /// What flags chose stands above every file.
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
                        text: format!("there is no phase `{name}`"),
                        hint: Some(format!("the phases are {}", known.join(", "))),
                    });
                }
            }
        }
        if let Some(level) = selection.level {
            self.policy.level = Sourced { value: level, origin: Origin::Flag("--level".into()) };
        }
    }

    fn header(&mut self, layer: &Layer, file: &File) {
        if let Some(version) = &file.version
            && *version.get_ref() != 1
        {
            let text = format!("version {} is not understood", version.get_ref());
            self.problem(layer, &version.span(), text, Some("write `version = 1`"));
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

    fn phases(&mut self, layer: &Layer, file: &File) {
        for (name, table) in &file.phases {
            let level = self.policy.level.clone();
            let new = || Phase { level, allow_write: Vec::new() };
            let current = self.policy.phases.entry(name.clone()).or_insert_with(new).level.value;
            let key = format!("phases.{name}.level");
            if let Some(level) = &table.level {
                let origin = layer.origin(&level.span());
                let value = *level.get_ref();
                self.change(layer, &key, &value, &origin, value > current, |policy, origin| {
                    if let Some(phase) = policy.phases.get_mut(name) {
                        phase.level = Sourced { value, origin };
                    }
                });
            }
            for entry in &table.allow_write {
                let key = format!("phases.{name}.allow_write");
                let origin = layer.origin(&entry.span());
                let Some(rule) = self.path_rule(entry.get_ref(), layer.base(), &origin) else {
                    continue;
                };
                let shown = entry.get_ref().clone();
                self.change(layer, &key, &shown, &origin, true, |policy, origin| {
                    if let Some(phase) = policy.phases.get_mut(name) {
                        phase.allow_write.push(Sourced { value: rule, origin });
                    }
                });
            }
        }
    }

    fn paths(&mut self, layer: &Layer, file: &File) {
        type Slot = fn(&mut Policy) -> &mut Vec<Sourced<PathRule>>;
        let table = &file.filesystem;
        let lists: [(&str, &Vec<Spanned<String>>, bool, Slot); 5] = [
            ("allow_read", &table.allow_read, true, |p| &mut p.filesystem.allow_read),
            ("allow_write", &table.allow_write, true, |p| &mut p.filesystem.allow_write),
            ("deny_read", &table.deny_read, false, |p| &mut p.filesystem.deny_read),
            ("deny_write", &table.deny_write, false, |p| &mut p.filesystem.deny_write),
            ("quiet", &table.quiet, true, |p| &mut p.filesystem.quiet),
        ];
        for (key, entries, widens, slot) in lists {
            let key = format!("filesystem.{key}");
            for entry in entries {
                let origin = layer.origin(&entry.span());
                if let Some(rule) = self.path_rule(entry.get_ref(), layer.base(), &origin) {
                    self.entry(layer, &key, entry, rule, widens, slot);
                }
            }
        }
    }

    fn hosts(&mut self, layer: &Layer, file: &File) {
        type Slot = fn(&mut Policy) -> &mut Vec<Sourced<DomainRule>>;
        let table = &file.network;
        let lists: [(&str, &Vec<Spanned<String>>, bool, Slot); 3] = [
            ("allowed_domains", &table.allowed_domains, true, |p| &mut p.network.allowed_domains),
            ("denied_domains", &table.denied_domains, false, |p| &mut p.network.denied_domains),
            ("private_domains", &table.private_domains, true, |p| &mut p.network.private_domains),
        ];
        for (key, entries, widens, slot) in lists {
            let key = format!("network.{key}");
            for entry in entries {
                match DomainRule::parse(entry.get_ref()) {
                    Ok(rule) => self.entry(layer, &key, entry, rule, widens, slot),
                    Err(error) => self.problem(layer, &entry.span(), error.to_string(), None),
                }
            }
        }
    }

    fn lists(&mut self, layer: &Layer, file: &File) {
        let hidden = file.network.allow_without_sni.as_ref();
        self.single(layer, "network.allow_without_sni", hidden, Wider::Higher, |p| {
            &mut p.network.allow_without_sni
        });
        for port in &file.network.allow_local_ports {
            let value = *port.get_ref();
            self.entry(layer, "network.allow_local_ports", port, value, true, |p| {
                &mut p.network.allow_local_ports
            });
        }
        for name in &file.environment.pass {
            let value = name.get_ref().clone();
            if value.is_empty() || value.contains(['=', '\0']) {
                let text = format!("`{value}` is no variable name");
                self.problem(layer, &name.span(), text, None);
            } else {
                self.entry(layer, "environment.pass", name, value, true, |p| {
                    &mut p.environment.pass
                });
            }
        }
    }

    fn quarantine(&mut self, layer: &Layer, file: &File) {
        if let Some(dir) = &file.quarantine.dir {
            let origin = layer.origin(&dir.span());
            if let Some(rule) = self.path_rule(dir.get_ref(), layer.base(), &origin) {
                if rule.is_pattern() {
                    let text = "the quarantine must be one directory, not a pattern".to_owned();
                    return self.problem(layer, &dir.span(), text, None);
                }
                if let Some(place) = rule.prefix(&AbsPath::root())
                    && let Some(why) = quarantine::unfit(&place, self.places)
                {
                    let text = format!("`{}` cannot be the quarantine: {why}", dir.get_ref());
                    let hint = Some("name a directory of its own, such as `~/work/quarantine`");
                    return self.problem(layer, &dir.span(), text, hint);
                }
                // Whoever names the directory makes it writable, so this always widens.
                self.change(layer, "quarantine.dir", dir.get_ref(), &origin, true, |p, origin| {
                    p.quarantine.dir = Some(Sourced { value: rule, origin });
                });
            }
        }
        self.single(layer, "quarantine.mode", file.quarantine.mode.as_ref(), Wider::Lower, |p| {
            &mut p.quarantine.mode
        });
    }

    fn limits(&mut self, layer: &Layer, file: &File) {
        let limits = &file.limits;
        self.size(layer, "limits.memory", limits.memory.as_ref(), |p| &mut p.limits.memory);
        self.size(layer, "limits.file_size", limits.file_size.as_ref(), |p| {
            &mut p.limits.file_size
        });
        self.bound(layer, "limits.processes", limits.processes.as_ref(), |p| {
            &mut p.limits.processes
        });
        self.bound(layer, "limits.wall_seconds", limits.wall_seconds.as_ref(), |p| {
            &mut p.limits.wall_seconds
        });
        self.bound(layer, "limits.idle_seconds", limits.idle_seconds.as_ref(), |p| {
            &mut p.limits.idle_seconds
        });
    }

    /// A limit that is written as a size.
    fn size(
        &mut self,
        layer: &Layer,
        key: &str,
        value: Option<&Spanned<String>>,
        slot: fn(&mut Policy) -> &mut Option<Sourced<ByteSize>>,
    ) {
        let Some(spanned) = value else { return };
        match ByteSize::parse(spanned.get_ref()) {
            Ok(size) => self.bound(layer, key, Some(&Spanned::new(spanned.span(), size)), slot),
            Err(error) => self.problem(layer, &spanned.span(), error.to_string(), None),
        }
    }

    /// A limit. None is wider than any.
    fn bound<T: PartialOrd + Copy + fmt::Display>(
        &mut self,
        layer: &Layer,
        key: &str,
        value: Option<&Spanned<T>>,
        slot: fn(&mut Policy) -> &mut Option<Sourced<T>>,
    ) {
        let Some(spanned) = value else { return };
        let value = *spanned.get_ref();
        let origin = layer.origin(&spanned.span());
        let old = slot(&mut self.policy).as_ref();
        let widens = old.is_some_and(|old| value > old.value);
        self.change(layer, key, &value, &origin, widens, |policy, origin| {
            *slot(policy) = Some(Sourced { value, origin });
        });
    }

    /// Replaces a single value.
    fn single<T: PartialOrd + Copy + serde::Serialize>(
        &mut self,
        layer: &Layer,
        key: &str,
        value: Option<&Spanned<T>>,
        wider: Wider,
        slot: fn(&mut Policy) -> &mut Sourced<T>,
    ) {
        let Some(spanned) = value else { return };
        let value = *spanned.get_ref();
        let widens = wider.widens(&slot(&mut self.policy).value, &value);
        let origin = layer.origin(&spanned.span());
        let shown = serde_json::to_string(&value).unwrap_or_default();
        self.change(layer, key, &shown, &origin, widens, |policy, origin| {
            *slot(policy) = Sourced { value, origin };
        });
    }

    /// Adds to a list. An entry that is already there keeps its first origin.
    fn entry<T: PartialEq, S>(
        &mut self,
        layer: &Layer,
        key: &str,
        spanned: &Spanned<S>,
        value: T,
        widens: bool,
        slot: fn(&mut Policy) -> &mut Vec<Sourced<T>>,
    ) where
        S: serde::Serialize,
    {
        if slot(&mut self.policy).iter().any(|known| known.value == value) {
            return;
        }
        let origin = layer.origin(&spanned.span());
        let shown = serde_json::to_string(spanned.get_ref()).unwrap_or_default();
        self.change(layer, key, &shown, &origin, widens, |policy, origin| {
            slot(policy).push(Sourced { value, origin });
        });
    }

    /// Applies a change, unless the layer is not trusted and the change widens.
    fn change(
        &mut self,
        layer: &Layer,
        key: &str,
        shown: &impl fmt::Display,
        origin: &Origin,
        widens: bool,
        apply: impl FnOnce(&mut Policy, Origin),
    ) {
        match layer.standing {
            Standing::Untrusted if widens => {
                let (key, value) = (key.to_owned(), shown.to_string());
                self.ignored.push(Widening { key, value, origin: origin.clone() });
            }
            Standing::Around if widens => {}
            _ => apply(&mut self.policy, origin.clone()),
        }
    }

    fn path_rule(&mut self, text: &str, base: &Path, origin: &Origin) -> Option<PathRule> {
        match PathRule::parse(text, base, &self.places.home) {
            Ok(rule) => Some(rule),
            Err(error) => {
                let text = error.to_string();
                self.problems.push(Problem { origin: origin.clone(), text, hint: None });
                None
            }
        }
    }

    fn problem(
        &mut self,
        layer: &Layer,
        span: &std::ops::Range<usize>,
        text: String,
        hint: Option<&str>,
    ) {
        let origin = layer.origin(span);
        self.problems.push(Problem { origin, text, hint: hint.map(str::to_owned) });
    }
}
