//! Reads layered `ringwall.toml` files into a [`policy::Policy`]. Every value keeps its origin.
//!
//! The order is: system, user, project from the git root down, `--config` or `RINGWALL_CONFIG`,
//! flags. A later layer extends lists and replaces single values. A project file can always narrow.
//! What it widens applies only after the user has trusted its content, because a project file can
//! come with a cloned repository. The same rule applies to a file that an environment variable names
//! inside the project.
//!
//! `keys.rs` lists every key. This crate reads files; it writes only the trust store.

mod check;
mod diagnose;
mod file;
mod grant;
mod keys;
mod layer;
mod load;
mod merge;
mod project;
mod quarantine;
mod schema;
mod setting;
pub mod setup;
mod trust;

#[cfg(test)]
mod tests;

pub use check::check;
pub use grant::{Grant, GrantError, Granted, Revoked, grant, revoke};
pub use keys::rows;
pub use layer::Explicit;
pub use load::{
    Aliases, LoadError, Loaded, Problem, Request, Selection, Warning, load, load_text, widening_of,
};
pub use merge::Widening;
pub use project::{PROJECT_FILE, Project, read_project_file};
pub use schema::schema;
pub use setting::Row;
pub use trust::{Trust, TrustError};
