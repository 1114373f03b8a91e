//! Layered `ringwall.toml` files become a [`policy::Policy`], every value with its origin.
//!
//! System, then user, then project, then `--config` or `RINGWALL_CONFIG`, then flags. Lists are
//! extended, single values are replaced. A project file can narrow freely; what it widens counts
//! only once the user has trusted its content, because a cloned repository can bring one.

mod check;
mod diagnose;
mod file;
mod grant;
mod layer;
mod load;
mod merge;
mod schema;
mod trust;

#[cfg(test)]
mod tests;

pub use check::check;
pub use grant::{Grant, GrantError, Granted, grant};
pub use layer::{Explicit, PROJECT_FILE};
pub use load::{
    Aliases, LoadError, Loaded, Problem, Request, Selection, Warning, load, load_text, widening_of,
};
pub use merge::Widening;
pub use schema::schema;
pub use trust::{Trust, TrustError};
