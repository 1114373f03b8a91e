//! Walks the syntax tree in the order of execution, with the shell's state.
//!
//! One file per kind of node: [`compound`] for what holds commands, [`run`] for simple commands and
//! what they run in turn, [`words`] for what words expand to, [`files`] for redirections.

mod compound;
mod files;
mod find;
mod run;
mod words;

pub use self::run::is_shell;

use std::ops::Range;
use std::path::Path;

use shuck_ast as ast;
use shuck_parser::parser::{ParseStatus, Parser};

use crate::command::{Analysis, Input, Redirect, Unknown};
use crate::state::State;
use crate::{limits, literal};

/// More commands than any honest call has.
const MOST_COMMANDS: usize = 2_000;

/// Where a text would run.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The current directory.
    pub dir: &'a Path,
    /// The user's home.
    pub home: &'a Path,
    /// What `git rev-parse --show-toplevel` says there, where that is known.
    pub top: Option<&'a Path>,
}

/// Reads bash text as it would run there.
pub fn analyse(text: &str, surroundings: &Surroundings<'_>) -> Analysis {
    let top = surroundings.top.map(|top| top.display().to_string());
    let mut walk = Walk { analysis: Analysis::default(), nesting: 0, top };
    let mut state = State::new(surroundings.dir, surroundings.home);
    walk.text(Source { text, base: 0, editable: true }, &mut state, &Context::default());
    walk.analysis
}

/// A text and its place in the outermost one.
#[derive(Clone, Copy)]
struct Source<'t> {
    text: &'t str,
    base: usize,
    /// Whether its bytes are those of the outermost text.
    editable: bool,
}

impl Source<'_> {
    fn range(&self, span: ast::Span) -> Range<usize> {
        let range = span.to_range();
        let start = usize::try_from(range.start().to_u32()).unwrap_or(0);
        let end = usize::try_from(range.end().to_u32()).unwrap_or(0);
        if self.editable {
            self.base + start..self.base + end
        } else {
            // Somewhere in the word that holds this text.
            self.base..self.base
        }
    }
}

/// What a command inherits from what encloses it.
#[derive(Clone, Default)]
struct Context {
    redirects: Vec<Redirect>,
    input: Option<Input>,
    /// Commands whose output is part of the input text.
    inner: Vec<usize>,
}

struct Walk {
    analysis: Analysis,
    nesting: usize,
    top: Option<String>,
}

impl Walk {
    fn text(&mut self, source: Source<'_>, state: &mut State, context: &Context) {
        if let Some(unknown) = limits::reject(source.text) {
            return self.unknown(source.base..source.base + unknown.span.end, unknown.why);
        }
        if self.nesting >= limits::DEEPEST {
            return self.unknown(source.base..source.base, "it is nested too deeply");
        }
        let parsed = Parser::new(source.text).parse();
        if parsed.status != ParseStatus::Clean {
            let whole = source.base..source.base + source.text.len();
            self.unknown(whole, "it is not valid bash, or the parser does not support it");
        }
        self.nesting += 1;
        self.sequence(&parsed.file.body, source, state, context);
        self.nesting -= 1;
    }

    fn unknown(&mut self, span: Range<usize>, why: &'static str) {
        let unknown = Unknown { span, why };
        if !self.analysis.unknown.contains(&unknown) {
            self.analysis.unknown.push(unknown);
        }
    }

    fn sequence(
        &mut self,
        sequence: &ast::StmtSeq,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        for statement in &sequence.stmts {
            let background =
                matches!(statement.terminator, Some(ast::StmtTerminator::Background(_)));
            if background {
                self.statement(statement, source, &mut state.clone(), context);
            } else {
                self.statement(statement, source, state, context);
            }
        }
    }

    fn statement(
        &mut self,
        statement: &ast::Stmt,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        if self.analysis.commands.len() > MOST_COMMANDS {
            return self.unknown(source.range(statement.span), "it has too many commands");
        }
        let mut inner = context.clone();
        let simple = matches!(statement.command, ast::Command::Simple(_));
        let mut own = Vec::new();
        for redirect in &statement.redirects {
            self.redirect(redirect, source, state, &mut own, &mut inner);
        }
        if !simple {
            inner.redirects.extend(own.iter().cloned());
        }
        match &statement.command {
            ast::Command::Simple(command) => {
                self.simple(command, own, source, state, &inner);
            }
            ast::Command::Builtin(command) => self.builtin(command, source, state),
            ast::Command::Decl(clause) => self.declaration(clause, source, state),
            ast::Command::Binary(binary) => self.binary(binary, source, state, &inner),
            ast::Command::Compound(compound) => self.compound(compound, source, state, &inner),
            ast::Command::Function(function) => self.function(function, source, state, &inner),
            ast::Command::AnonymousFunction(function) => {
                self.statement(&function.body, source, state, &inner);
            }
        }
    }

    /// A part whose inside is not walked: a substitution in it would be missed.
    fn hidden(&mut self, span: ast::Span, source: Source<'_>) {
        if literal::hides_substitution(span.slice(source.text)) {
            self.unknown(source.range(span), "it contains a substitution that cannot be read");
        }
    }
}
