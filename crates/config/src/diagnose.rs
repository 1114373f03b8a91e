//! Reports what is wrong with a file that could not be read, with the line.
//!
//! Runs only after reading has failed, so it need not be fast: it compares the document with the
//! JSON schema, to name every unknown key with the nearest known one, and every unusable value with
//! what is allowed instead.

use std::path::Path;

use serde_json::Value;
use toml_edit::{Document, Item, TableLike};

use crate::file::REMOVED_KEYS;
use crate::layer::line_of;
use crate::load::Problem;
use crate::schema::schema;

/// Every problem of a file's text, at least one.
pub(crate) fn diagnose(path: &Path, text: &str, error: &toml::de::Error) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Ok(document) = Document::parse(text) {
        let schema = schema();
        let mut walk = Walk { path, text, schema: &schema, problems: &mut problems };
        walk.table(document.as_table(), &schema, "");
    }
    if problems.is_empty() {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        let message = error.message().trim().to_owned();
        problems.push(Problem::new(path, line, message, None));
    }
    problems
}

struct Walk<'a> {
    path: &'a Path,
    text: &'a str,
    schema: &'a Value,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Walk<'a> {
    fn table(&mut self, table: &dyn TableLike, schema: &'a Value, at: &str) {
        for (key, item) in table.iter() {
            let full = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
            match (self.child(schema, key), item.as_table_like()) {
                (Some(child), Some(inner)) if is(child, "object") => {
                    self.table(inner, child, &full);
                }
                (Some(child), _) => self.value(table, key, item, child, &full),
                (None, _) if at.is_empty() && REMOVED_KEYS.contains(&key) => {}
                (None, _) => self.unknown(table, schema, key, &full),
            }
        }
    }

    /// The schema of a key, through references and tables with free names such as `phases`.
    fn child(&self, schema: &'a Value, key: &str) -> Option<&'a Value> {
        let found = schema
            .get("properties")
            .and_then(|properties| properties.get(key))
            .or_else(|| schema.get("additionalProperties").filter(|extra| extra.is_object()))?;
        Some(self.resolved(found))
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|at| self.schema.pointer(at.trim_start_matches('#')));
        target.unwrap_or(schema)
    }

    fn unknown(&mut self, table: &dyn TableLike, schema: &Value, key: &str, full: &str) {
        let known = schema.get("properties").and_then(Value::as_object);
        let nearest = known
            .into_iter()
            .flat_map(|known| known.keys())
            .max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
        let hint = nearest.map(|nearest| format!("the nearest key is `{nearest}`"));
        self.problem(line_of_key(table, key, self.text), format!("unknown key `{full}`"), hint);
    }

    /// Compares one value with the values or the type that the schema allows.
    fn value(&mut self, table: &dyn TableLike, key: &str, item: &Item, schema: &Value, full: &str) {
        let line = item
            .span()
            .map_or_else(|| line_of_key(table, key, self.text), |at| line_of(self.text, at.start));
        let allowed = allowed_values(schema);
        match item.as_str() {
            Some(text) if allowed.contains(&text) => {}
            Some(text) if !allowed.is_empty() => {
                let hint = Some(format!("expected {}", alternatives(&allowed)));
                self.problem(line, format!("unknown value `{text}` for `{full}`"), hint);
            }
            _ => {
                if let Some(expected) = mismatch(item, schema, &allowed) {
                    self.problem(line, format!("`{full}` must be {expected}"), None);
                }
            }
        }
    }

    fn problem(&mut self, line: usize, text: String, hint: Option<String>) {
        self.problems.push(Problem::new(self.path, line, text, hint));
    }
}

/// What a value should have been, if it is of another type than the schema says.
fn mismatch(item: &Item, schema: &Value, allowed: &[&str]) -> Option<String> {
    if !allowed.is_empty() {
        return Some(format!("one of {}", alternatives(allowed)));
    }
    let expected = match schema.get("type").and_then(Value::as_str)? {
        "object" if item.as_table_like().is_none() => "a table",
        "array" if item.as_array().is_none() => "a list",
        "string" if item.as_str().is_none() => "a string",
        "integer" if item.as_integer().is_none() => "a whole number",
        "boolean" if item.as_bool().is_none() => "`true` or `false`",
        _ => return None,
    };
    Some(expected.to_owned())
}

fn line_of_key(table: &dyn TableLike, key: &str, text: &str) -> usize {
    let span = table.get_key_value(key).and_then(|(key, _)| key.span());
    span.map_or(1, |span| line_of(text, span.start))
}

fn is(schema: &Value, kind: &str) -> bool {
    schema.get("type").and_then(Value::as_str) == Some(kind)
}

/// The words that a value can be. A word with documentation has a schema of its own.
fn allowed_values(schema: &Value) -> Vec<&str> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let documented = list("oneOf").flat_map(|one| {
        let many = one.get("enum").and_then(Value::as_array).into_iter().flatten();
        one.get("const").into_iter().chain(many)
    });
    list("enum").chain(documented).filter_map(Value::as_str).collect()
}

/// `a`, `b` or `c`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
