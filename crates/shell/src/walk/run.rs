//! Simple commands: wrappers taken off, built-ins followed, nested text read.

use std::ops::Range;

use shuck_ast as ast;

use super::find::find_commands;
use super::{Context, Source, Walk};
use crate::command::{Assignment, Command, Dir, Input, Quote, Redirect, Value, Word};
use crate::limits;
use crate::state::State;
use crate::wrapper::{self, Inner};

impl Walk {
    pub(super) fn simple(
        &mut self,
        command: &ast::SimpleCommand,
        redirects: Vec<Redirect>,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        let mut assignments = Vec::new();
        for assignment in &command.assignments {
            assignments.push(self.assignment(assignment, source, state));
        }
        let name = (!command.name.span.to_range().is_empty()).then_some(&command.name);
        let words: Vec<_> = name
            .into_iter()
            .chain(&command.args)
            .map(|word| self.word(word, source, state))
            .collect();
        if words.is_empty() {
            for assignment in &assignments {
                state.set(&assignment.name, &assignment.value);
            }
        }
        let mut all = context.redirects.clone();
        all.extend(redirects);
        if words.is_empty() && all.is_empty() {
            return;
        }
        let span = match (words.first(), words.last()) {
            (Some(first), Some(last)) => first.span.start..last.span.end,
            _ => source.range(command.span),
        };
        let input = context.input.clone().unwrap_or(Input::Inherited);
        let run = Run {
            words,
            wrappers: Vec::new(),
            assignments,
            redirects: all,
            input,
            inner: context.inner.clone(),
            span,
            source,
        };
        self.run(run, state, state.dir.clone());
    }

    /// Takes wrappers off, follows what changes the shell, and notes the command.
    fn run(&mut self, mut run: Run<'_>, state: &mut State, dir: Dir) {
        let program = run.program().map(str::to_owned);
        if let Some(name) = program.as_deref() {
            if let Some(wrapper) = wrapper::find(name)
                && run.wrappers.len() < limits::DEEPEST
            {
                return self.unwrap(run, wrapper, state, dir);
            }
            self.builtins(name, &mut run, state, &dir);
        }
        let nested = program.as_deref().and_then(|name| nested_text(name, run.arguments()));
        let nested: Option<(Word, bool)> = nested.map(|(word, here)| (word.clone(), here));
        let finds = match program.as_deref() {
            Some("find") => find_commands(run.arguments()),
            _ => Vec::new(),
        };
        let source = run.source;
        let template = run.clone();
        let reads_program =
            program.as_deref().is_some_and(|name| is_shell(name) && reads_stdin(run.arguments()));
        self.note(run, state, dir.clone());
        if let Some((word, here)) = nested {
            self.nested(&word, here, source, state, &dir);
        } else if reads_program && let Input::Text(text) = &template.input {
            let inner = Source { text, base: template.span.start, editable: false };
            self.text(inner, &mut state.clone(), &Context::default());
        }
        for found in finds {
            let mut inner = template.clone();
            inner.words = found.words;
            inner.wrappers.push("find".into());
            inner.redirects.clear();
            let at = if found.in_place { state.directory(&found.start) } else { dir.clone() };
            self.run(inner, &mut state.clone(), at);
        }
    }

    fn unwrap(&mut self, run: Run<'_>, wrapper: &wrapper::Wrapper, state: &mut State, dir: Dir) {
        let unwrapped = wrapper.unwrap(run.arguments());
        let inside = state.at(&dir);
        let dir = unwrapped.chdir.as_ref().map_or(dir, |value| inside.directory(value));
        match unwrapped.inner {
            Inner::Nothing => self.note(run, state, dir),
            Inner::Text(word) => {
                let (word, source) = (word.clone(), run.source);
                self.note(run, state, dir.clone());
                self.nested(&word, false, source, state, &dir);
            }
            // `watch` and `parallel` give their words to a shell.
            Inner::Words([word, ..])
                if word.value.known().is_some_and(|text| text.contains([' ', ';', '|', '&'])) =>
            {
                let (word, source) = (word.clone(), run.source);
                self.note(run, state, dir.clone());
                self.nested(&word, false, source, state, &dir);
            }
            Inner::Words(words) => {
                let mut inner = run.clone();
                inner.words = words.to_vec();
                inner.wrappers.push(wrapper.name.into());
                if wrapper.assigns {
                    inner.take_assignments();
                }
                if wrapper.appends {
                    let end = inner.words.last().map_or(run.span.end, |word| word.span.end);
                    inner.words.push(Word {
                        value: Value::Unknown {
                            prefix: String::new(),
                            why: "it is read when the command runs",
                        },
                        span: end..end,
                        quote: Quote::Mixed,
                        inner: Vec::new(),
                    });
                }
                // Only the shell itself changes directory; `sudo cd x` changes nothing here.
                if matches!(wrapper.name, "command" | "builtin" | "exec" | "time") {
                    self.run(inner, state, dir);
                } else {
                    self.run(inner, &mut state.clone(), dir);
                }
            }
        }
    }

    /// Built-ins that change what later commands see.
    fn builtins(&mut self, name: &str, run: &mut Run<'_>, state: &mut State, dir: &Dir) {
        let source = run.source;
        match name {
            "cd" | "pushd" | "popd" => {
                let here = state.at(dir);
                state.dir = moved(name, run, &here);
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for word in run.arguments() {
                    if let Some((name, value)) = word.value.known().and_then(|t| t.split_once('='))
                    {
                        state.set(name, &Value::text(value));
                        state.export(name);
                    }
                }
            }
            "unset" | "read" | "mapfile" | "readarray" | "getopts" | "printf" => {
                let names: Vec<_> = run
                    .arguments()
                    .iter()
                    .filter_map(|word| word.value.known())
                    .map(str::to_owned)
                    .collect();
                for name in names {
                    state.forget(&name);
                    state.fill(&name, &run.inner);
                    if let Input::Pipe(producers) = &run.input {
                        state.fill(&name, producers);
                    }
                }
            }
            "eval" => {
                let arguments = run.arguments().to_vec();
                if let [word] = arguments.as_slice() {
                    let word = word.clone();
                    self.nested(&word, true, source, state, dir);
                } else if arguments.iter().all(|word| word.value.known().is_some()) {
                    let texts: Vec<_> =
                        arguments.iter().filter_map(|word| word.value.known()).collect();
                    let text = texts.join(" ");
                    let inner = Source { text: &text, base: run.span.start, editable: false };
                    self.text(inner, state, &Context::default());
                } else if !arguments.is_empty() {
                    self.unknown(run.span.clone(), "eval runs text that is built at run time");
                }
            }
            "trap" => {
                if let Some(word) = run.arguments().first().cloned()
                    && run.arguments().len() > 1
                    && !word.value.known().is_some_and(|text| text.is_empty() || text == "-")
                {
                    self.nested(&word, false, source, state, dir);
                }
            }
            name if state.moving_functions.contains(name) => {
                state.dir = Dir::Unknown("a function changes it");
            }
            _ => {}
        }
    }

    pub(super) fn builtin(
        &mut self,
        command: &ast::BuiltinCommand,
        source: Source<'_>,
        state: &mut State,
    ) {
        let (word, extra) = match command {
            ast::BuiltinCommand::Break(one) => (&one.depth, &one.extra_args),
            ast::BuiltinCommand::Continue(one) => (&one.depth, &one.extra_args),
            ast::BuiltinCommand::Return(one) => (&one.code, &one.extra_args),
            ast::BuiltinCommand::Exit(one) => (&one.code, &one.extra_args),
        };
        for word in word.iter().chain(extra) {
            self.word(word, source, state);
        }
    }

    /// Shell text inside a word.
    fn nested(
        &mut self,
        word: &Word,
        here: bool,
        source: Source<'_>,
        state: &mut State,
        dir: &Dir,
    ) {
        let Value::Known { text, .. } = &word.value else {
            return self.unknown(word.span.clone(), "it runs text that only exists at run time");
        };
        // In single quotes, or in double quotes without anything special, bytes map one to one.
        let quoted = match word.quote {
            Quote::Single | Quote::Double => word.span.start + 1,
            Quote::None | Quote::Mixed => word.span.start,
        };
        let same = word.quote != Quote::Mixed
            && word.span.len() == text.len() + 2 * usize::from(word.quote != Quote::None);
        let plain = word.quote == Quote::Single || !text.contains(['\\', '$', '`', '"']);
        let editable = source.editable && same && plain;
        let base = if editable { quoted } else { word.span.start };
        let inner = Source { text, base, editable };
        if here {
            self.text(inner, state, &Context::default());
        } else {
            let mut inside = state.at(dir);
            self.text(inner, &mut inside, &Context::default());
        }
    }

    fn note(&mut self, run: Run<'_>, state: &State, dir: Dir) {
        let mut assignments = run.assignments;
        for (name, value) in state.environment() {
            if !assignments.iter().any(|known| known.name == *name) {
                let value = value.clone();
                assignments.push(Assignment { name: name.clone(), value, span: run.span.clone() });
            }
        }
        let in_words = run.words.iter().flat_map(|word| &word.inner);
        let inner = in_words.chain(&run.inner).copied().collect();
        self.analysis.commands.push(Command {
            words: run.words,
            wrappers: run.wrappers,
            assignments,
            redirects: run.redirects,
            dir,
            input: run.input,
            inner,
            span: run.span,
            editable: run.source.editable,
        });
    }
}

/// A command on its way through its wrappers.
#[derive(Clone)]
struct Run<'t> {
    words: Vec<Word>,
    wrappers: Vec<String>,
    assignments: Vec<Assignment>,
    redirects: Vec<Redirect>,
    input: Input,
    inner: Vec<usize>,
    span: Range<usize>,
    source: Source<'t>,
}

impl Run<'_> {
    fn program(&self) -> Option<&str> {
        let text = self.words.first()?.value.known()?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// `NAME=value` words in front of the inner command.
    fn take_assignments(&mut self) {
        while let Some(word) = self.words.first() {
            let text = match &word.value {
                Value::Known { text, .. } => text,
                Value::Unknown { prefix, .. } => prefix,
                Value::Pattern { .. } => return,
            };
            let Some((name, value)) = text.split_once('=') else { return };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return;
            }
            let value = match &word.value {
                Value::Unknown { why, .. } => Value::Unknown { prefix: value.to_owned(), why },
                _ => Value::text(value),
            };
            let (name, span) = (name.to_owned(), word.span.clone());
            self.assignments.push(Assignment { name, value, span });
            self.words.remove(0);
        }
    }
}

/// Where `cd`, `pushd` and `popd` lead.
fn moved(name: &str, run: &Run<'_>, state: &State) -> Dir {
    let mut operands = run.arguments().iter().filter(|word| {
        !word
            .value
            .known()
            .is_some_and(|text| text.len() > 1 && text.starts_with('-') || text == "--")
    });
    let target = operands.next();
    match (name, target) {
        ("popd", _) | ("pushd", None) => Dir::Unknown("it depends on the directory stack"),
        (_, None) => Dir::Known(state.home.clone()),
        (_, Some(word)) => match word.value.known() {
            Some("-") => Dir::Unknown("it is the previous directory"),
            Some(text) if text.starts_with('+') && name == "pushd" => {
                Dir::Unknown("it depends on the directory stack")
            }
            Some("") => state.dir.clone(),
            Some(text)
                if !text.starts_with(['/', '.', '~'])
                    && (run.assignments.iter().any(|a| a.name == "CDPATH")
                        || state.environment().any(|(name, _)| name == "CDPATH")) =>
            {
                Dir::Unknown("it depends on CDPATH")
            }
            _ => logical(state.directory(&word.value), run),
        },
    }
}

/// `cd` takes `..` by its text, as bash does, unless `-P` makes it physical.
fn logical(dir: Dir, run: &Run<'_>) -> Dir {
    let physical = run.arguments().iter().any(|word| {
        word.value.known().is_some_and(|text| {
            text.starts_with('-') && !text.starts_with("--") && text.contains('P')
        })
    });
    match dir {
        Dir::Known(path) if !physical => {
            let mut clean = std::path::PathBuf::new();
            for component in path.components() {
                match component {
                    std::path::Component::CurDir => {}
                    std::path::Component::ParentDir => {
                        clean.pop();
                    }
                    component => clean.push(component),
                }
            }
            Dir::Known(clean)
        }
        dir => dir,
    }
}

/// Programs that read shell text.
pub fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "rbash" | "fish")
}

/// The word with shell text in a shell's arguments, and whether it runs in this shell.
fn nested_text<'w>(name: &str, arguments: &'w [Word]) -> Option<(&'w Word, bool)> {
    if !is_shell(name) {
        return None;
    }
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.value.known()?;
        if matches!(text, "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
            rest.next();
        } else if text.starts_with('-') && !text.starts_with("--") && text.contains('c') {
            return rest.next().map(|word| (word, false));
        } else if !text.starts_with(['-', '+']) {
            return None;
        }
    }
    None
}

/// Whether a shell reads its text from standard input.
fn reads_stdin(arguments: &[Word]) -> bool {
    let operand = arguments.iter().find(|word| {
        !word.value.known().is_some_and(|text| text.starts_with(['-', '+']) && text != "-")
    });
    let has_s = arguments.iter().any(|word| {
        word.value.known().is_some_and(|text| {
            text.starts_with('-') && !text.starts_with("--") && text.contains('s')
        })
    });
    match operand {
        None => true,
        Some(word) => {
            has_s
                || word
                    .value
                    .known()
                    .is_some_and(|text| matches!(text, "-" | "/dev/stdin" | "/dev/fd/0"))
        }
    }
}
