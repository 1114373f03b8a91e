//! Lists, pipelines, branches, loops and functions: what holds commands.

use shuck_ast as ast;

use super::{Context, Source, Walk};
use crate::command::{Dir, Input, Value};
use crate::state::State;

/// Literal loops are followed value by value up to this many.
const MOST_ITERATIONS: usize = 16;

impl Walk {
    pub(super) fn binary(
        &mut self,
        binary: &ast::BinaryCommand,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        match binary.op {
            ast::BinaryOp::And => {
                self.statement(&binary.left, source, state, context);
                // Should the left side fail, nothing of the right side happens, and what follows
                // runs where the left side left it. A failing `cd` would stay: both are possible.
                let before = state.clone();
                self.statement(&binary.right, source, state, context);
                if before.dir != state.dir && matches!(before.dir, Dir::Unknown(_)) {
                    state.join(&before);
                }
            }
            ast::BinaryOp::Or => {
                self.statement(&binary.left, source, state, context);
                let mut right = state.clone();
                self.statement(&binary.right, source, &mut right, context);
                if !ends(&binary.right) {
                    state.join(&right);
                }
            }
            ast::BinaryOp::Pipe | ast::BinaryOp::PipeAll => {
                let first = self.analysis.commands.len();
                self.statement(&binary.left, source, &mut state.clone(), context);
                let producers = (first..self.analysis.commands.len()).collect();
                let mut inner = context.clone();
                inner.input = Some(Input::Pipe(producers));
                self.statement(&binary.right, source, &mut state.clone(), &inner);
            }
        }
    }

    pub(super) fn compound(
        &mut self,
        compound: &ast::CompoundCommand,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        match compound {
            ast::CompoundCommand::If(branch) => {
                self.sequence(&branch.condition, source, state, context);
                let mut ways = vec![&branch.then_branch];
                for (condition, body) in &branch.elif_branches {
                    self.sequence(condition, source, state, context);
                    ways.push(body);
                }
                ways.extend(&branch.else_branch);
                let may_skip = branch.else_branch.is_none();
                self.ways(&ways, may_skip, source, state, context);
            }
            ast::CompoundCommand::For(one) => {
                let words = one.words.as_deref().unwrap_or_default();
                let name = one.targets.first().and_then(|target| target.name.as_ref());
                self.each(name.map(ast::Name::as_str), words, &one.body, source, state, context);
            }
            ast::CompoundCommand::Select(one) => {
                self.each(
                    Some(one.variable.as_str()),
                    &one.words,
                    &one.body,
                    source,
                    state,
                    context,
                );
            }
            ast::CompoundCommand::Foreach(one) => {
                self.each(
                    Some(one.variable.as_str()),
                    &one.words,
                    &one.body,
                    source,
                    state,
                    context,
                );
            }
            ast::CompoundCommand::While(one) => {
                self.repeat(&[&one.condition, &one.body], source, state, context);
            }
            ast::CompoundCommand::Until(one) => {
                self.repeat(&[&one.condition, &one.body], source, state, context);
            }
            ast::CompoundCommand::Repeat(one) => {
                self.repeat(&[&one.body], source, state, context);
            }
            ast::CompoundCommand::ArithmeticFor(one) => {
                let parts = [&one.init_ast, &one.condition_ast, &one.step_ast];
                for part in parts.into_iter().flatten() {
                    self.arithmetic(part, source, state);
                }
                self.repeat(&[&one.body], source, state, context);
            }
            ast::CompoundCommand::Case(one) => {
                self.word(&one.word, source, state);
                for item in &one.cases {
                    for pattern in &item.patterns {
                        self.pattern(pattern, source, state);
                    }
                }
                let ways: Vec<_> = one.cases.iter().map(|item| &item.body).collect();
                self.ways(&ways, true, source, state, context);
            }
            ast::CompoundCommand::Subshell(body) => {
                self.sequence(body, source, &mut state.clone(), context);
            }
            ast::CompoundCommand::BraceGroup(body) => self.sequence(body, source, state, context),
            ast::CompoundCommand::Arithmetic(one) => {
                if let Some(expression) = &one.expr_ast {
                    self.arithmetic(expression, source, state);
                }
                self.hidden(one.span, source);
            }
            ast::CompoundCommand::Time(one) => {
                if let Some(command) = &one.command {
                    self.statement(command, source, state, context);
                }
            }
            ast::CompoundCommand::Conditional(one) => {
                self.condition(&one.expression, source, state);
            }
            ast::CompoundCommand::Coproc(one) => {
                self.statement(&one.body, source, &mut state.clone(), context);
            }
            ast::CompoundCommand::Always(one) => {
                self.sequence(&one.body, source, state, context);
                self.sequence(&one.always_body, source, state, context);
            }
        }
    }

    /// Exactly one of several bodies runs, or none.
    fn ways(
        &mut self,
        ways: &[&ast::StmtSeq],
        may_skip: bool,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        let before = state.clone();
        let mut after = may_skip.then(|| before.clone());
        for body in ways {
            let mut taken = before.clone();
            self.sequence(body, source, &mut taken, context);
            if body.stmts.last().is_some_and(ends) {
                continue;
            }
            match &mut after {
                Some(after) => after.join(&taken),
                None => after = Some(taken),
            }
        }
        if let Some(after) = after {
            *state = after;
        }
    }

    /// A loop over words. Literal words are followed one by one.
    fn each(
        &mut self,
        name: Option<&str>,
        words: &[ast::Word],
        body: &ast::StmtSeq,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        let values: Vec<_> =
            words.iter().map(|word| self.word(word, source, state).value).collect();
        let known = values.iter().all(|value| value.known().is_some());
        if known && !values.is_empty() && values.len() <= MOST_ITERATIONS {
            for value in &values {
                if let Some(name) = name {
                    state.set(name, value);
                }
                self.sequence(body, source, state, context);
            }
        } else {
            if let Some(name) = name {
                match values.as_slice() {
                    [pattern @ Value::Pattern { .. }] => state.set(name, pattern),
                    _ => state.forget(name),
                }
            }
            self.repeat(&[body], source, state, context);
        }
    }

    /// Bodies that may run any number of times. What they change is not known at their start.
    fn repeat(
        &mut self,
        bodies: &[&ast::StmtSeq],
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        let commands = self.analysis.commands.len();
        let unknown = self.analysis.unknown.len();
        let mut once = state.clone();
        for body in bodies {
            self.sequence(body, source, &mut once, context);
        }
        if once != *state {
            // A second pass with what may have changed, in place of the first.
            self.analysis.commands.truncate(commands);
            self.analysis.unknown.truncate(unknown);
            state.join(&once);
            let mut again = state.clone();
            for body in bodies {
                self.sequence(body, source, &mut again, context);
            }
            state.join(&again);
        }
    }

    pub(super) fn function(
        &mut self,
        function: &ast::FunctionDef,
        source: Source<'_>,
        state: &mut State,
        context: &Context,
    ) {
        let mut inside = state.clone();
        self.statement(&function.body, source, &mut inside, context);
        if inside.dir != state.dir {
            for entry in &function.header.entries {
                if let Some(name) = &entry.static_name {
                    state.moving_functions.insert(name.as_str().to_owned());
                }
            }
        }
    }

    fn pattern(&mut self, pattern: &ast::Pattern, source: Source<'_>, state: &mut State) {
        for part in &pattern.parts {
            match &part.kind {
                ast::PatternPart::Word(word) => {
                    self.word(word, source, state);
                }
                ast::PatternPart::Group { patterns, .. } => {
                    for pattern in patterns {
                        self.pattern(pattern, source, state);
                    }
                }
                _ => self.hidden(part.span, source),
            }
        }
    }

    fn condition(
        &mut self,
        expression: &ast::ConditionalExpr,
        source: Source<'_>,
        state: &mut State,
    ) {
        match expression {
            ast::ConditionalExpr::Binary(one) => {
                self.condition(&one.left, source, state);
                self.condition(&one.right, source, state);
            }
            ast::ConditionalExpr::Unary(one) => self.condition(&one.expr, source, state),
            ast::ConditionalExpr::Parenthesized(one) => self.condition(&one.expr, source, state),
            ast::ConditionalExpr::Word(word) | ast::ConditionalExpr::Regex(word) => {
                self.word(word, source, state);
            }
            ast::ConditionalExpr::Pattern(pattern) => self.pattern(pattern, source, state),
            ast::ConditionalExpr::VarRef(one) => self.hidden(one.span, source),
        }
    }

    fn arithmetic(
        &mut self,
        node: &ast::ArithmeticExprNode,
        source: Source<'_>,
        state: &mut State,
    ) {
        use ast::ArithmeticExpr as Expr;
        match &node.kind {
            Expr::ShellWord(word) => {
                self.word(word, source, state);
            }
            Expr::Indexed { index, .. } => self.arithmetic(index, source, state),
            Expr::Parenthesized { expression } => self.arithmetic(expression, source, state),
            Expr::Unary { expr, .. } | Expr::Postfix { expr, .. } => {
                self.arithmetic(expr, source, state);
            }
            Expr::Binary { left, right, .. } => {
                self.arithmetic(left, source, state);
                self.arithmetic(right, source, state);
            }
            Expr::Conditional { condition, then_expr, else_expr } => {
                self.arithmetic(condition, source, state);
                self.arithmetic(then_expr, source, state);
                self.arithmetic(else_expr, source, state);
            }
            Expr::Assignment { value, .. } => self.arithmetic(value, source, state),
            Expr::Number(_) | Expr::Variable(_) => {}
        }
    }
}

/// Whether nothing behind this statement runs after it.
fn ends(statement: &ast::Stmt) -> bool {
    match &statement.command {
        ast::Command::Builtin(command) => {
            matches!(command, ast::BuiltinCommand::Exit(_) | ast::BuiltinCommand::Return(_))
        }
        ast::Command::Compound(ast::CompoundCommand::BraceGroup(body)) => {
            body.stmts.last().is_some_and(ends)
        }
        _ => false,
    }
}
