//! The `ringwall` binary: nothing but its exit status.

fn main() -> std::process::ExitCode {
    ringwall::main()
}
