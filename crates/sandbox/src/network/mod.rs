//! The run's own network: a namespace whose only way out are listeners that the supervisor's side
//! serves, and how the program behind a connection is found.

pub(crate) mod listeners;
pub(crate) mod namespace;
pub(crate) mod sock_diag;
pub(crate) mod socket_owners;
