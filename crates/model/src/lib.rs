//! The data types that all parts of Ringwall share, each concept defined once.
//!
//! Owns [`Action`], [`Verdict`], [`Decision`], [`AbsPath`], [`Level`],
//! [`Record`]. Does not decide anything, and does no I/O.

mod action;
mod caller;
mod decision;
mod digest;
mod domain;
mod edit;
mod enforcement;
mod event;
mod fact;
mod git_settings;
mod host;
mod level;
mod origin;
mod path;
pub mod plan;
mod publication;
mod quantity;
mod quote;
mod record;
mod remedy;
mod rule;
mod settings;
mod tool;

pub use action::{Access, Action, Fetch, PathRef};
pub use caller::{Caller, Transport};
pub use decision::{Decision, Moved, Opaque, Reason, Redirect, Verdict};
pub use digest::{Digest, NotADigest};
pub use domain::{DomainError, DomainRule};
pub use edit::Edit;
pub use enforcement::{Attribution, Enforcement};
pub use event::{Event, EventKind, Mode, ToolCall};
pub use fact::{Facts, FileText, Query, Unresolvable};
pub use git_settings::{GitSetting, GitSettings, Signing};
pub use host::{Host, HostError};
pub use level::{Level, UnknownLevel};
pub use origin::{Origin, Sourced};
pub use path::{AbsPath, PathError, absolute};
pub use plan::{
    Base, Cause, Kind, Limits, Link, Net, OutboundPorts, Piece, Plan, PrivateLayer, Usual,
    WhyTemporary, WorktreePart,
};
pub use publication::{Publication, PublicationError};
pub use quantity::{ByteSize, ByteSizeError};
pub use quote::{printed_word, shell_word, toml_string};
pub use record::Record;
pub use remedy::Remedy;
pub use rule::Rule;
pub use settings::{HookGroup, OffSwitch, SettingsRules, Shape};
pub use tool::{Effect, Presence, Tool};
