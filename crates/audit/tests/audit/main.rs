//! What the audit log promises, tested from the outside: through its API and its files.

extern crate ringwall_audit as audit;

#[cfg(test)]
mod appending;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod places;
#[cfg(test)]
mod querying;
#[cfg(test)]
mod redaction;
#[cfg(test)]
mod tampering;
#[cfg(test)]
mod test_log;
#[cfg(test)]
mod writer;
