//! Tools that no table knows: MCP servers, newer versions, other agents' names.
//!
//! Their fields are judged by name. Whether the tool reads or writes is taken from its own name,
//! and in doubt it writes.

mod file_url;
mod kind;
mod meaning;
mod text;
mod words;

use model::{AbsPath, Access, Action, ToolCall};
use serde_json::{Map, Value};

use self::kind::Kind;
use self::meaning::Meaning;
use super::glob::lower_glob;
use super::{path, run};
use crate::protected::{protecting, shadows};
use crate::shell::Scene;

/// Deeper input than any tool has.
const MOST_DEPTH: usize = 16;

/// The actions that the fields of an unknown tool mean.
pub(super) fn lower_unknown(call: &ToolCall, scene: &Scene) -> Vec<Action> {
    let kind = kind::of(&call.tool);
    let about_files = kind::is_about_files(&call.tool);
    let mut walk = Walk { kind, about_files, scene, actions: Vec::new() };
    let (access, place) = (kind.access(), Place::Input);
    let top = Field { key: "", meaning: Meaning::Unknown, access, place };
    walk.object(&top, &call.input, Keys::Fields, 0);
    walk.actions
}

struct Walk<'a> {
    kind: Kind,
    about_files: bool,
    scene: &'a Scene,
    actions: Vec<Action>,
}

/// A field on the way down: what its texts mean, and what happens to the paths among them.
#[derive(Clone, Copy)]
struct Field<'a> {
    key: &'a str,
    meaning: Meaning,
    access: Access,
    place: Place,
}

/// Where a field is. Only the text of a top-level field can be replaced by a correction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The whole input.
    Input,
    /// A field of the input itself.
    TopLevel,
    /// Below another field, or an item of a list.
    Nested,
}

/// What the keys of an object are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Names of fields: `file: {"name": …}`.
    Fields,
    /// Names of things: `files: {"a.txt": …}`.
    Names,
}

impl Walk<'_> {
    fn object(
        &mut self,
        parent: &Field<'_>,
        object: &Map<String, Value>,
        keys: Keys,
        depth: usize,
    ) {
        for (key, value) in object {
            let field = self.below(parent, key, keys);
            self.value(&field, value, depth);
        }
    }

    /// The field of this name below another. A name that says nothing means what its parent means.
    fn below<'a>(&mut self, parent: &Field<'_>, key: &'a str, keys: Keys) -> Field<'a> {
        let written = parent.access == Access::Write || meaning::is_destination(key);
        let access = if written { Access::Write } else { Access::Read };
        let place = if parent.place == Place::Input { Place::TopLevel } else { Place::Nested };
        let field = |meaning| Field { key, meaning, access, place };
        let own = meaning::of(key, self.kind);
        let in_path = matches!(parent.meaning, Meaning::Path | Meaning::Inherited);
        if in_path && could_name_file(key, own, keys) {
            self.text(&field(Meaning::Path), key);
        } else {
            // `changes: {"file:///etc/hosts": …}`
            self.text(&field(Meaning::Plain), key);
        }
        let names_file = key.contains(['/', '~']) || (keys == Keys::Names && key.contains('.'));
        field(match (own, parent.meaning) {
            // The value under a file's name is its new name or its content.
            _ if in_path && names_file && self.kind == Kind::Moves => Meaning::End,
            _ if in_path && names_file => Meaning::Plain,
            (Meaning::Unknown, _) if in_path => Meaning::Inherited,
            (Meaning::Unknown, Meaning::Command) => Meaning::Command,
            (Meaning::Unknown, above) if meaning::is_naming(key) => above,
            (own, _) => own,
        })
    }

    fn value(&mut self, field: &Field<'_>, value: &Value, depth: usize) {
        if depth > MOST_DEPTH {
            return self.invalid(field, "it is nested too deeply");
        }
        match value {
            Value::Object(inner) => {
                let keys = if words::is_plural(field.key) { Keys::Names } else { Keys::Fields };
                self.object(field, inner, keys, depth + 1);
            }
            Value::Array(items) => {
                let field = Field { place: Place::Nested, ..*field };
                for item in items {
                    match item {
                        Value::Object(inner) => self.object(&field, inner, Keys::Fields, depth + 1),
                        item => self.value(&field, item, depth + 1),
                    }
                }
            }
            Value::String(text) => self.text(field, text),
            Value::Null | Value::Bool(_) => {}
            Value::Number(_) => {
                if field.meaning == Meaning::Path && !meaning::may_be_number(field.key) {
                    self.invalid(field, "it is not a string");
                }
            }
        }
    }

    fn text(&mut self, field: &Field<'_>, text: &str) {
        if let Some(url) = file_url::read(text, field.meaning) {
            match url {
                Ok(paths) => {
                    for local in paths {
                        self.path(field, field.access, &local);
                    }
                }
                Err(problem) => self.invalid(field, problem),
            }
            return;
        }
        match field.meaning {
            Meaning::Command | Meaning::End if text.is_empty() => {}
            Meaning::Command => {
                let own = (field.place == Place::TopLevel).then_some(field.key);
                self.actions.extend(run(text, own, self.scene));
            }
            // Left out, in the tools that only may be given a path: they stay where they are.
            Meaning::Path if text.is_empty() && !self.kind.says_it_writes() => {
                self.path(field, field.access, ".");
            }
            Meaning::Path | Meaning::End => self.path(field, field.access, text),
            Meaning::Side | Meaning::Loose | Meaning::Hint | Meaning::Inherited => {
                self.maybe_path(field, text::trim(text));
            }
            Meaning::Glob => self.glob(field, text),
            // A pattern can also be one of text. `/*` makes little sense there.
            Meaning::Pattern if self.about_files || text.contains("/*") => {
                self.glob(field, text::trim(text));
            }
            Meaning::Pattern | Meaning::Plain | Meaning::Unknown => {}
        }
    }

    /// A text that may be a path and may be anything else. Most words name something inside the
    /// workspace, which does no harm.
    fn maybe_path(&mut self, field: &Field<'_>, text: &str) {
        let loose = matches!(field.meaning, Meaning::Loose | Meaning::Hint);
        let skip = text.is_empty()
            || !text::could_be_path(text)
            || (field.meaning == Meaning::Hint && !text::leaves(text))
            || (loose && !self.kind.says_it_writes() && text::is_route(text));
        if skip {
            return;
        }
        // `to: "bob"` is not a file, and must not make the call a write where nothing may be written.
        let bare = text::is_bare(text) && (loose || !text.contains('.'));
        let word = bare && !self.kind.says_it_writes() && !self.is_protected(text);
        self.path(field, if word { Access::Read } else { field.access }, text);
    }

    fn is_protected(&self, text: &str) -> bool {
        let at = model::absolute(text, &self.scene.cwd, &self.scene.home).ok();
        at.and_then(|at| AbsPath::lexical(&at).ok()).is_some_and(|at| protecting(&at).is_some())
    }

    fn path(&mut self, field: &Field<'_>, access: Access, text: &str) {
        let action = path(access, text, field.key, self.scene);
        let carries = self.kind.carries_trees()
            || matches!(field.meaning, Meaning::End | Meaning::Side | Meaning::Loose);
        let carried = match &action {
            Action::Path { path, .. } if access == Access::Write && carries => carried(&path.at),
            _ => None,
        };
        self.actions.push(action);
        if let Some(below) = carried {
            self.actions.push(path(Access::Write, &below.to_string(), field.key, self.scene));
        }
    }

    fn glob(&mut self, field: &Field<'_>, pattern: &str) {
        for mut action in lower_glob(pattern, field.key, None, self.scene) {
            if let Action::Path { access, .. } = &mut action {
                *access = field.access;
            }
            self.actions.push(action);
        }
    }

    fn invalid(&mut self, field: &Field<'_>, problem: &str) {
        let (field, problem) = (field.key.into(), problem.into());
        self.actions.push(Action::Invalid { field, problem });
    }
}

/// Whether a key below a path field could be the name of a file rather than of a field.
fn could_name_file(key: &str, own: Meaning, keys: Keys) -> bool {
    key.contains(['/', '.', '~']) || (keys == Keys::Names && own == Meaning::Unknown)
}

/// The protected path below one where a whole tree is put, or taken away.
fn carried(at: &std::path::Path) -> Option<AbsPath> {
    let at = AbsPath::lexical(at).ok()?;
    let parts = shadows(&at)?.path;
    let below = (1..parts.len()).filter_map(|count| parts.get(count..));
    let mut below =
        below.map(|rest| rest.iter().fold(at.clone(), |dir, name| dir.join(name.as_ref())));
    below.find(|path| protecting(path).is_some())
}
