//! Tool tables: what each tool of an agent does with its input, as data.

use crate::Access;

/// One tool and its effects.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The name on the wire.
    pub name: &'static str,
    /// What each field does. Empty means: nothing this policy governs.
    pub effects: &'static [Effect],
}

/// What one input field does.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// The field is a path.
    Path {
        /// The field's name.
        field: &'static str,
        /// What happens to the path.
        access: Access,
        /// Whether the tool can do without it.
        presence: Presence,
    },
    /// The field is a pattern of paths, relative to the path in `base`.
    Glob {
        /// The field's name.
        field: &'static str,
        /// The field that holds the starting directory.
        base: &'static str,
        /// Whether the tool can do without it.
        presence: Presence,
    },
    /// The field is shell text.
    Command {
        /// The field's name.
        field: &'static str,
        /// Whether the tool can do without it.
        presence: Presence,
    },
    /// The field is a URL that the agent fetches.
    Url {
        /// The field's name.
        field: &'static str,
        /// Whether the tool can do without it.
        presence: Presence,
    },
    /// The tool waits for a person.
    AskPerson,
}

/// Whether a tool works without a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Without it the call means nothing, so it is denied.
    Required,
    /// Without it the tool works on the workspace, or does not use it.
    Optional,
}
