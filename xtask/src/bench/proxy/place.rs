//! [`Place`]: a running program, the server or a client in a sandbox.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::processes::{Cpu, Memory, cpu, memory};
use crate::failure::{Context, Failure};

/// A program that answers a line with a line.
pub(super) struct Place {
    name: &'static str,
    child: Child,
    /// Dropping it makes the program end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Place {
    /// Starts the program, or a sandbox with the program in it.
    pub(super) fn start(name: &'static str, mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context(|| format!("cannot start {name}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let output = output.ok_or_else(|| Failure::new(format!("{name} has no output")))?;
        Ok(Self { name, child, input, output: BufReader::new(output) })
    }

    /// The next line that the program prints.
    pub(super) fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let count = self.output.read_line(&mut line);
        match count.context(|| format!("cannot read from {}", self.name))? {
            0 => Err(Failure::new(format!("{} has ended", self.name))),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// The time for connections one after the other.
    pub(super) fn queue(
        &mut self,
        way: &str,
        connections: u32,
        bytes: u64,
    ) -> Result<Duration, Failure> {
        self.job(&format!("queue {way} {connections} {bytes}"))
    }

    /// The time for connections that are all open at once.
    pub(super) fn crowd(
        &mut self,
        way: &str,
        connections: u32,
        bytes: u64,
    ) -> Result<Duration, Failure> {
        self.job(&format!("crowd {way} {connections} {bytes}"))
    }

    fn job(&mut self, job: &str) -> Result<Duration, Failure> {
        if let Some(input) = &mut self.input {
            writeln!(input, "{job}").context(|| format!("cannot write to {}", self.name))?;
        }
        let line = self.line()?;
        match line.parse() {
            Ok(seconds) => Ok(Duration::from_secs_f64(seconds)),
            Err(_) => Err(Failure::new(format!("{}: {line}", self.name))),
        }
    }

    /// The CPU time of the client and its sandbox so far.
    pub(super) fn cpu(&self) -> Cpu {
        cpu(self.child.id())
    }

    /// The memory of the sandbox.
    pub(super) fn memory(&self) -> Result<Memory, Failure> {
        memory(self.child.id())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
