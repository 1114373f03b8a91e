//! The `ringwall` binary. Everything is in the library.

fn main() -> std::process::ExitCode {
    ringwall::main()
}
