//! The name service inside the wall.
//!
//! It resolves nothing. An allowed name gets an address that exists only inside, and a connection
//! to that address says which name was meant. No question ever leaves the machine.

pub(crate) mod book;
pub(crate) mod message;
pub(crate) mod serve;
