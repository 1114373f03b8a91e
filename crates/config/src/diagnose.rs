//! Says what is wrong with a file that could not be read, down to the line.
//!
//! Runs only once reading has failed, so it may take its time: it walks the document along the
//! JSON schema to name every unknown key and the known key nearest to it.

use serde_json::Value;
use toml_edit::{Document, TableLike};

use crate::file::REMOVED_KEYS;
use crate::layer::line_of;
use crate::load::Problem;
use crate::schema::schema;

/// Every problem of a file's text, at least one.
pub(crate) fn diagnose(
    path: &std::path::Path,
    text: &str,
    error: &toml::de::Error,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Ok(document) = Document::parse(text) {
        let schema = schema();
        let walk = Walk { path, text, schema: &schema };
        walk.table(document.as_table(), &schema, "", &mut problems);
    }
    if problems.is_empty() {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        let message = error.message().trim().to_owned();
        problems.push(Problem::new(path, line, message, None));
    }
    problems
}

struct Walk<'a> {
    path: &'a std::path::Path,
    text: &'a str,
    schema: &'a Value,
}

impl Walk<'_> {
    fn table(&self, table: &dyn TableLike, schema: &Value, at: &str, problems: &mut Vec<Problem>) {
        for (key, item) in table.iter() {
            let full = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
            match self.child(schema, key) {
                Some(child) => {
                    if let Some(inner) = item.as_table_like() {
                        self.table(inner, child, &full, problems);
                    }
                }
                None if at.is_empty() && REMOVED_KEYS.contains(&key) => {}
                None => problems.push(self.unknown(table, schema, key, &full)),
            }
        }
    }

    /// The schema of a key, through references and free-form tables such as `phases`.
    fn child<'s>(&'s self, schema: &'s Value, key: &str) -> Option<&'s Value> {
        let found = schema
            .get("properties")
            .and_then(|properties| properties.get(key))
            .or_else(|| schema.get("additionalProperties").filter(|extra| extra.is_object()))?;
        match found.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.schema.pointer(reference.trim_start_matches('#')),
            None => Some(found),
        }
    }

    fn unknown(&self, table: &dyn TableLike, schema: &Value, key: &str, full: &str) -> Problem {
        let line = table
            .get_key_value(key)
            .and_then(|(key, _)| key.span())
            .map_or(1, |span| line_of(self.text, span.start));
        let known = schema.get("properties").and_then(Value::as_object);
        let nearest = known
            .into_iter()
            .flat_map(|known| known.keys())
            .max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
        let hint = nearest.map(|nearest| format!("the nearest key is `{nearest}`"));
        Problem::new(self.path, line, format!("unknown key `{full}`"), hint)
    }
}
