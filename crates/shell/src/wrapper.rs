//! Programs that run another program given in their own arguments, as a table.

use crate::command::{Value, Word};
use crate::options::{Grammar, Parsed, parse_options};

/// A wrapper: where the inner command starts, and what it changes on the way.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    grammar: Grammar,
    /// Operands before the inner command: the duration of `timeout`, the file of `flock`.
    operands: usize,
    /// Options that set the directory of the inner command.
    chdir: &'static [&'static str],
    /// Whether `NAME=value` words may precede the inner command.
    pub(crate) assigns: bool,
    /// Options with which it runs nothing: `command -v`.
    inert: &'static [&'static str],
    /// Options whose value is shell text: `su -c`, `env -S`.
    text: &'static [&'static str],
    /// Whether it appends arguments that only exist when it runs.
    pub(crate) appends: bool,
}

const fn row(name: &'static str, short: &'static str, long: &'static [&'static str]) -> Wrapper {
    Wrapper {
        name,
        grammar: Grammar { short, long, flags: &[], abbreviates: true, stops_at_operand: true },
        operands: 0,
        chdir: &[],
        assigns: false,
        inert: &[],
        text: &[],
        appends: false,
    }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        assigns: true,
        chdir: &["-D", "--chdir"],
        inert: &["-l", "--list", "-e", "--edit", "-v", "--validate", "-k", "-K"],
        ..row(
            "sudo",
            "ughpCTRDrta",
            &[
                "user",
                "group",
                "host",
                "prompt",
                "close-from",
                "command-timeout",
                "chroot",
                "chdir",
                "role",
                "type",
                "other-user",
            ],
        )
    },
    Wrapper { assigns: true, ..row("doas", "uC", &[]) },
    Wrapper {
        assigns: true,
        chdir: &["-C", "--chdir"],
        text: &["-S", "--split-string"],
        ..row("env", "uCS", &["unset", "chdir", "split-string"])
    },
    Wrapper { operands: 1, ..row("timeout", "ks", &["kill-after", "signal"]) },
    Wrapper { operands: 1, ..row("gtimeout", "ks", &["kill-after", "signal"]) },
    row("nice", "n", &["adjustment"]),
    Wrapper { inert: &["-p", "--pid"], ..row("ionice", "cnp", &["class", "classdata", "pid"]) },
    Wrapper { operands: 1, inert: &["-p", "--pid"], ..row("chrt", "TPDp", &["pid"]) },
    Wrapper { operands: 1, inert: &["-p", "--pid"], ..row("taskset", "p", &["pid"]) },
    row("nohup", "", &[]),
    row("setsid", "", &[]),
    row("stdbuf", "ioe", &["input", "output", "error"]),
    row("time", "fo", &["format", "output"]),
    Wrapper { inert: &["-v", "-V"], ..row("command", "", &[]) },
    row("builtin", "", &[]),
    row("exec", "a", &[]),
    row("strace", "oeEpsaIuPX", &["output", "trace", "env", "attach", "string-limit", "user"]),
    row("ltrace", "oepsau", &["output"]),
    row("perf", "", &[]),
    row("watch", "nq", &["interval"]),
    Wrapper {
        operands: 1,
        text: &["-c", "--command"],
        ..row("flock", "wEc", &["timeout", "wait", "conflict-exit-code", "command"])
    },
    Wrapper {
        appends: true,
        ..row(
            "xargs",
            "InPLdasE",
            &[
                "replace",
                "max-args",
                "max-procs",
                "max-lines",
                "delimiter",
                "arg-file",
                "max-chars",
                "process-slot-var",
            ],
        )
    },
    Wrapper {
        appends: true,
        ..row(
            "parallel",
            "jNnIaS",
            &[
                "jobs", "max-args", "arg-file", "sshlogin", "colsep", "delay", "timeout",
                "results", "joblog",
            ],
        )
    },
    row("unshare", "SGRw", &["setuid", "setgid", "root", "wd", "map-user", "map-group"]),
    row("nsenter", "tSG", &["target", "setuid", "setgid"]),
    Wrapper { operands: 1, ..row("chroot", "", &["userspec", "groups"]) },
    row("firejail", "", &[]),
    row("busybox", "", &[]),
    row("toybox", "", &[]),
    row("caffeinate", "tw", &[]),
    row("torsocks", "", &[]),
    row("proxychains", "f", &[]),
    row("proxychains4", "f", &[]),
    row("systemd-run", "pEu", &["unit", "property", "setenv", "working-directory"]),
    Wrapper { operands: 1, ..row("setarch", "", &[]) },
    row("fakeroot", "", &[]),
    row("catchsegv", "", &[]),
    row("valgrind", "", &[]),
    row("unbuffer", "", &[]),
    row("rlwrap", "", &[]),
    row("chronic", "", &[]),
    Wrapper {
        text: &["-c", "--command"],
        ..row("su", "csgGw", &["command", "shell", "group", "supp-group"])
    },
    Wrapper {
        text: &["-c", "--command"],
        ..row("runuser", "cusgG", &["command", "user", "shell", "group"])
    },
    Wrapper {
        text: &["-c", "--command"],
        ..row(
            "script",
            "cEIOBTmo",
            &[
                "command",
                "echo",
                "log-in",
                "log-out",
                "log-io",
                "log-timing",
                "logging-format",
                "output-limit",
            ],
        )
    },
];

/// What a wrapper runs.
pub(crate) enum Inner<'w> {
    /// A command in its own words.
    Words(&'w [Word]),
    /// Shell text in one of its words.
    Text(&'w Word),
    /// Nothing.
    Nothing,
}

/// The inner command of a wrapper, and the directory it sets.
pub(crate) struct Unwrapped<'w> {
    pub(crate) inner: Inner<'w>,
    pub(crate) chdir: Option<Value>,
}

pub(crate) fn find(program: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == program)
}

impl Wrapper {
    /// Splits the wrapper's arguments.
    pub(crate) fn unwrap<'w>(&self, arguments: &'w [Word]) -> Unwrapped<'w> {
        let mut arguments = arguments;
        // Two words of the wrapper belong together: `perf stat`, `direnv exec`.
        if self.name == "perf" {
            arguments = arguments.get(1..).unwrap_or_default();
        }
        let mut grammar = self.grammar;
        // These take their options behind operands too: `su root -c …`.
        grammar.stops_at_operand = !matches!(self.name, "su" | "runuser" | "script");
        let parsed: Parsed<'w> = parse_options(arguments, &grammar);
        let chdir = parsed.last(self.chdir).and_then(|option| option.value.clone());
        let nothing = Unwrapped { inner: Inner::Nothing, chdir: None };
        if parsed.has(self.inert) {
            return nothing;
        }
        if let Some(word) = parsed.last(self.text).and_then(|option| option.word) {
            return Unwrapped { inner: Inner::Text(word), chdir };
        }
        let Some(first) = parsed.operands.get(self.operands) else { return nothing };
        // `flock FILE -c TEXT`: the option comes right after the operand.
        if first.value.known().is_some_and(|text| self.text.contains(&text))
            && let Some(word) = parsed.operands.get(self.operands + 1)
        {
            return Unwrapped { inner: Inner::Text(word), chdir };
        }
        let at = arguments.iter().position(|word| std::ptr::eq(word, *first));
        match at.and_then(|at| arguments.get(at..)) {
            Some(words) => Unwrapped { inner: Inner::Words(words), chdir },
            None => nothing,
        }
    }
}
