//! Redirections, heredocs and assignments.

use shuck_ast as ast;

use super::{Context, Source, Walk};
use crate::command::{Assignment, Input, Redirect, RedirectKind, Value};
use crate::literal;
use crate::state::State;

impl Walk {
    pub(super) fn redirect(
        &mut self,
        redirect: &ast::Redirect,
        source: Source<'_>,
        state: &mut State,
        own: &mut Vec<Redirect>,
        context: &mut Context,
    ) {
        use ast::RedirectKind as Kind;
        match (&redirect.target, redirect.kind) {
            (ast::RedirectTarget::Heredoc(heredoc), _) => {
                let first = self.analysis.commands.len();
                context.input = Some(self.heredoc(heredoc, source, state, context));
                context.inner.extend(first..self.analysis.commands.len());
            }
            (ast::RedirectTarget::Word(word), Kind::HereString) => {
                let word = self.word(word, source, state);
                context.inner.extend(&word.inner);
                context.input = Some(match word.value {
                    Value::Known { text, .. } => Input::Text(text),
                    _ => Input::UnknownText,
                });
            }
            (ast::RedirectTarget::Word(word), kind) => {
                let target = self.word(word, source, state);
                let raw = redirect.span.slice(source.text);
                let behind = raw.rsplit(['&', '<', '>']).next().unwrap_or_default().trim();
                // The tree shows `&>>` twice: once with its file, once as a copied descriptor.
                let descriptor = behind == "-"
                    || raw == "&>>"
                    || (!behind.is_empty()
                        && behind.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit()));
                let kind = match kind {
                    Kind::DupInput | Kind::DupOutput if descriptor => return,
                    Kind::Input | Kind::DupInput => RedirectKind::Read,
                    Kind::ReadWrite => RedirectKind::ReadWrite,
                    _ => RedirectKind::Write,
                };
                own.push(Redirect { kind, fd: redirect.fd, target });
            }
        }
    }

    fn heredoc(
        &mut self,
        heredoc: &ast::Heredoc,
        source: Source<'_>,
        state: &mut State,
        context: &mut Context,
    ) -> Input {
        let body = heredoc.body.span.slice(source.text);
        // Quoting is read from the delimiter's own bytes: for a second heredoc on one line the
        // tree has it wrong.
        let delimiter = heredoc.delimiter.raw.span.slice(source.text);
        if delimiter.contains(['\'', '"', '\\']) {
            return Input::Text(body.to_owned());
        }
        let mut plain = true;
        for part in &heredoc.body.parts {
            match &part.kind {
                ast::HeredocBodyPart::Literal(_) => {
                    if literal::hides_substitution(part.span.slice(source.text)) {
                        let why =
                            "a heredoc contains a substitution that the parser does not support";
                        self.unknown(source.range(part.span), why);
                        plain = false;
                    }
                }
                ast::HeredocBodyPart::CommandSubstitution { body, .. } => {
                    plain = false;
                    self.substitution(body, part.span, source, state);
                }
                ast::HeredocBodyPart::ArithmeticExpansion { expression_word_ast, .. } => {
                    plain = false;
                    self.word(expression_word_ast, source, state);
                }
                ast::HeredocBodyPart::Variable(name) => {
                    plain = false;
                    context.inner.extend(state.sources(name.as_str()));
                }
                ast::HeredocBodyPart::Parameter(_) => {
                    plain = false;
                    self.hidden(part.span, source);
                }
            }
        }
        if plain { Input::Text(literal::double_quoted(body)) } else { Input::UnknownText }
    }

    pub(super) fn assignment(
        &mut self,
        assignment: &ast::Assignment,
        source: Source<'_>,
        state: &mut State,
    ) -> Assignment {
        let name = assignment.target.name.as_str().to_owned();
        let span = source.range(assignment.span);
        let unknown = |why| Value::Unknown { prefix: String::new(), why };
        let value = match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                let word = self.word(word, source, state);
                state.fill(&name, &word.inner);
                word.value
            }
            ast::AssignmentValue::Compound(array) => {
                for element in &array.elements {
                    let (ast::ArrayElem::Sequential(value)
                    | ast::ArrayElem::Keyed { value, .. }
                    | ast::ArrayElem::KeyedAppend { value, .. }) = element;
                    self.word(&value.word, source, state);
                }
                unknown("it comes from an array")
            }
        };
        let value = match value {
            _ if assignment.append || assignment.target.subscript.is_some() => {
                unknown("it is built up in steps")
            }
            value => value,
        };
        Assignment { name, value, span }
    }

    pub(super) fn declaration(
        &mut self,
        clause: &ast::DeclClause,
        source: Source<'_>,
        state: &mut State,
    ) {
        let exports = matches!(clause.variant.as_str(), "export" | "declare" | "typeset");
        for operand in &clause.operands {
            match operand {
                ast::DeclOperand::Assignment(assignment) => {
                    let assigned = self.assignment(assignment, source, state);
                    state.set(&assigned.name, &assigned.value);
                    if exports {
                        state.export(&assigned.name);
                    }
                }
                ast::DeclOperand::Name(name) if exports => state.export(name.name.as_str()),
                ast::DeclOperand::Name(_) => {}
                ast::DeclOperand::Flag(word) | ast::DeclOperand::Dynamic(word) => {
                    self.word(word, source, state);
                }
            }
        }
    }
}
