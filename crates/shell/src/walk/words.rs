//! What words expand to.

use shuck_ast as ast;

use super::{Context, Source, Walk};
use crate::command::{Dir, Quote, Value, Word};
use crate::state::State;
use crate::{limits, literal};

impl Walk {
    pub(super) fn word(&mut self, word: &ast::Word, source: Source<'_>, state: &mut State) -> Word {
        let mut text = Text::default();
        let expands = |brace: &ast::BraceSyntax| {
            matches!(brace.kind, ast::BraceSyntaxKind::Expansion(_))
                && brace.quote_context == ast::BraceQuoteContext::Unquoted
        };
        for (at, part) in word.parts.iter().enumerate() {
            self.part(part, Quoting::Unquoted, at == 0, source, state, &mut text);
        }
        if word.brace_syntax.iter().any(expands) {
            text.braces();
        }
        let quote = match word.parts.as_slice() {
            [part] => match &part.kind {
                ast::WordPart::SingleQuoted { dollar: false, .. } => Quote::Single,
                ast::WordPart::DoubleQuoted { dollar: false, .. } => Quote::Double,
                ast::WordPart::Literal(_) if !part.span.slice(source.text).contains('\\') => {
                    Quote::None
                }
                _ => Quote::Mixed,
            },
            _ => Quote::Mixed,
        };
        Word { value: text.value, span: source.range(word.span), quote, inner: text.inner }
    }

    fn part(
        &mut self,
        part: &ast::WordPartNode,
        quoting: Quoting,
        first: bool,
        source: Source<'_>,
        state: &mut State,
        text: &mut Text,
    ) {
        let raw = part.span.slice(source.text);
        match &part.kind {
            ast::WordPart::Literal(_) => {
                if literal::hides_substitution(raw)
                    && (quoting == Quoting::Unquoted || !raw.contains("<("))
                {
                    self.unknown(
                        source.range(part.span),
                        "it contains a substitution that cannot be read",
                    );
                }
                match quoting {
                    Quoting::Double => text.push(&literal::double_quoted(raw)),
                    Quoting::Unquoted => {
                        if first && raw.starts_with('~') {
                            text.tilde();
                        }
                        match literal::wildcard(raw) {
                            Some(at) => {
                                text.push(&literal::unquoted(raw.get(..at).unwrap_or_default()));
                                text.pattern();
                                text.push(&literal::unquoted(raw.get(at..).unwrap_or_default()));
                            }
                            None => text.push(&literal::unquoted(raw)),
                        }
                    }
                }
            }
            ast::WordPart::SingleQuoted { value, .. } => {
                text.push(value.slice(source.text));
            }
            ast::WordPart::DoubleQuoted { parts, .. } => {
                for part in parts {
                    self.part(part, Quoting::Double, false, source, state, text);
                }
            }
            ast::WordPart::Variable(name) => {
                text.inner.extend(state.sources(name.as_str()));
                text.variable(state.variable(name.as_str()), quoting);
            }
            ast::WordPart::Parameter(parameter) => {
                self.parameter(parameter, part.span, quoting, source, state, text);
            }
            ast::WordPart::CommandSubstitution { body, .. } => {
                let inner = self.substitution(body, part.span, source, state);
                match self.output(&inner) {
                    Some(output) => text.push(&output),
                    None => text.unknown("it is the output of a command"),
                }
                text.inner.extend(inner);
            }
            ast::WordPart::ProcessSubstitution { body, .. } => {
                text.inner.extend(self.substitution(body, part.span, source, state));
                // The commands in it are judged separately; to this one it is a pipe.
                text.push("/dev/fd/63");
            }
            ast::WordPart::ArithmeticExpansion { expression_word_ast, .. } => {
                text.inner.extend(self.word(expression_word_ast, source, state).inner);
                text.unknown("it is computed");
            }
            _ => {
                self.hidden(part.span, source);
                text.unknown("it depends on a variable");
            }
        }
    }

    fn parameter(
        &mut self,
        parameter: &ast::ParameterExpansion,
        span: ast::Span,
        quoting: Quoting,
        source: Source<'_>,
        state: &mut State,
        text: &mut Text,
    ) {
        use ast::BourneParameterExpansion as Bourne;
        match &parameter.syntax {
            ast::ParameterExpansionSyntax::Bourne(Bourne::Access { reference })
                if reference.subscript.is_none() =>
            {
                text.inner.extend(state.sources(reference.name.as_str()));
                text.variable(state.variable(reference.name.as_str()), quoting);
            }
            // What is left of a file name without its end is still in the same directory.
            ast::ParameterExpansionSyntax::Bourne(Bourne::Operation {
                reference,
                operator,
                ..
            }) if matches!(
                **operator,
                ast::ParameterOp::RemoveSuffixShort { .. }
                    | ast::ParameterOp::RemoveSuffixLong { .. }
            ) && matches!(state.variable(reference.name.as_str()), Value::Pattern { .. }) =>
            {
                self.hidden(span, source);
                text.variable(state.variable(reference.name.as_str()), quoting);
            }
            ast::ParameterExpansionSyntax::Bourne(Bourne::Operation {
                operand_word_ast, ..
            }) => {
                let before = self.analysis.commands.len();
                if let Some(word) = operand_word_ast {
                    text.inner.extend(self.word(word, source, state).inner);
                }
                if before == self.analysis.commands.len() {
                    self.hidden(span, source);
                }
                text.unknown("it depends on a variable");
            }
            _ => {
                self.hidden(span, source);
                text.unknown("it depends on a variable");
            }
        }
    }

    pub(super) fn substitution(
        &mut self,
        body: &ast::StmtSeq,
        span: ast::Span,
        source: Source<'_>,
        state: &mut State,
    ) -> Vec<usize> {
        // Escaped backquotes nest another level that the tree keeps as text.
        if span.slice(source.text).starts_with('`') && span.slice(source.text).contains("\\`") {
            self.unknown(source.range(span), "it nests backquotes");
        }
        if self.nesting >= limits::DEEPEST {
            self.unknown(source.range(span), "it is nested too deeply");
            return Vec::new();
        }
        let first = self.analysis.commands.len();
        self.nesting += 1;
        self.sequence(body, source, &mut state.clone(), &Context::default());
        self.nesting -= 1;
        (first..self.analysis.commands.len()).collect()
    }

    /// What a few commands print, where that can be known before they run.
    fn output(&self, commands: &[usize]) -> Option<String> {
        let [only] = commands else { return None };
        let command = self.analysis.commands.get(*only)?;
        let words: Option<Vec<_>> = command.words.iter().map(|word| word.value.known()).collect();
        match (words?.as_slice(), &command.dir) {
            (["pwd"], Dir::Known(dir)) => Some(dir.display().to_string()),
            (["git", "rev-parse", "--show-toplevel"], Dir::Known(dir)) => {
                let top = self.top.as_ref()?;
                let plain = !dir.components().any(|part| part.as_os_str() == "..");
                (plain && dir.starts_with(top)).then(|| top.clone())
            }
            // A new name below the directory for temporary files.
            (["mktemp"] | ["mktemp", "-d"], _) => Some("/tmp/tmp.XXXXXXXXXX".into()),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Unquoted,
    Double,
}

/// A word's value while it is put together.
struct Text {
    value: Value,
    inner: Vec<usize>,
}

impl Default for Text {
    fn default() -> Self {
        Self { value: Value::text(""), inner: Vec::new() }
    }
}

impl Text {
    fn push(&mut self, more: &str) {
        match &mut self.value {
            Value::Known { text, .. } => text.push_str(more),
            Value::Pattern { .. } if literal::climbs(more) => {
                self.unknown("`..` follows a wildcard");
            }
            Value::Pattern { .. } | Value::Unknown { .. } => {}
        }
    }

    fn tilde(&mut self) {
        if let Value::Known { tilde, .. } = &mut self.value {
            *tilde = true;
        }
    }

    fn pattern(&mut self) {
        if let Value::Known { text, tilde } = &mut self.value {
            self.value = Value::Pattern { prefix: std::mem::take(text), tilde: *tilde };
        }
    }

    /// Several words, which begin alike: a pattern unless one of them could go elsewhere.
    fn braces(&mut self) {
        let Value::Known { text, tilde } = &self.value else {
            return self.unknown("it is a brace expansion");
        };
        let at = text.find('{').unwrap_or(0);
        let (prefix, rest) = text.split_at(at);
        let elsewhere = literal::climbs(rest)
            || (prefix.is_empty() && rest.contains('/'))
            || rest.contains("/,")
            || rest.contains("{/")
            || rest.contains(",/");
        if elsewhere {
            return self.unknown("it is a brace expansion");
        }
        self.value = Value::Pattern { prefix: prefix.to_owned(), tilde: *tilde };
    }

    fn unknown(&mut self, why: &'static str) {
        match &mut self.value {
            Value::Known { text: prefix, .. } | Value::Pattern { prefix, .. } => {
                self.value = Value::Unknown { prefix: std::mem::take(prefix), why };
            }
            Value::Unknown { .. } => {}
        }
    }

    fn variable(&mut self, value: Value, quoting: Quoting) {
        match value {
            // Unquoted, a value with blanks or wildcards would become several words.
            Value::Known { text, .. }
                if quoting == Quoting::Double
                    || !text.contains([' ', '\t', '\n', '*', '?', '[']) =>
            {
                if text.is_empty() && quoting == Quoting::Unquoted {
                    self.unknown("it may expand to nothing");
                } else {
                    self.push(&text);
                }
            }
            Value::Known { .. } => self.unknown("it splits into several words"),
            Value::Pattern { prefix, .. } => {
                self.push(&prefix);
                self.pattern();
            }
            Value::Unknown { why, .. } => self.unknown(why),
        }
    }
}
