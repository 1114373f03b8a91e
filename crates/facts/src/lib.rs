//! Asks the machine what the pure core needs to know, once, before anything is decided.
//!
//! Owns the only path resolver in Ringwall, the reading of small files, and the places that follow
//! from the environment. Decides nothing.

mod git;
pub mod git_config;
pub mod git_objects;
mod places;
mod resolve;
mod text;
mod users_file;
mod walk;

use model::{Facts, Query};

pub use git::{git_root, is_repository, linked_git_dir, other_checkouts};
pub use places::{Places, PlacesError};
pub use resolve::{Elsewhere, Resolver};
pub use text::{LARGEST_TEXT, read_bytes, read_small};
pub use users_file::open_users_file;
pub use walk::{PATH_MAX, Step, Visit, open_directory, walk, walk_deep};

/// Answers all questions at once.
pub fn answer(queries: &[Query]) -> Facts {
    answer_with(&mut Resolver::default(), queries)
}

/// The same with what a resolver has already seen for this decision.
pub fn answer_with(resolver: &mut Resolver, queries: &[Query]) -> Facts {
    let mut facts = Facts::default();
    for query in queries {
        match query {
            Query::Resolve(path) => {
                facts.set_resolved(path.clone(), resolver.resolve(path));
            }
            Query::Text(path) => facts.set_text(path.clone(), read_small(path)),
        }
    }
    facts
}
