//! Layered `ringwall.toml` files become a [`policy::Policy`], every value with its origin.
//!
//! System, then user, then project from the git root down, then `--config` or `RINGWALL_CONFIG`,
//! then flags. Lists are extended, single values are replaced. A project file can narrow freely;
//! what it widens counts only once the user has trusted its content, because a cloned repository
//! can bring one. The same holds for whatever a variable names where a repository could have put it.

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
pub use grant::{Grant, GrantError, Granted, grant};
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
