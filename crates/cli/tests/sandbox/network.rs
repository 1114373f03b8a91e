//! The network of a run, tried by real clients against servers on this machine.
//!
//! Servers listen on loopback, and names lead there as `RINGWALL_TEST_HOSTS` says. A name that is
//! never granted leads to a witness: whatever a client does, the witness must hear nothing.

mod clients;
mod connections;
mod failure;
mod grants;
mod learn;
mod levels;
mod lookups;
mod ports;
mod publish;
mod registries;
mod servers;
mod ssh;
mod tls;
