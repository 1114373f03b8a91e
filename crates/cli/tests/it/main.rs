//! The binary as its users meet it: real files, real processes, the real client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "in a test, a failed step should stop the test"
)]

mod audit;
mod claude;
mod claude_shell;
mod corpus;
mod direction;
mod examples;
mod hook;
mod hook_env;
mod inside;
mod install;
mod laws;
mod policy;
mod shell;
mod typed;
mod usage;

/// Without the feature, cargo leaves out the tests of the sandbox and says nothing.
#[cfg(not(feature = "test-hooks"))]
#[test]
fn all_tests_need_the_feature_test_hooks() {
    panic!("run `cargo test -p ringwall --features test-hooks`, or `cargo xtask test`");
}
