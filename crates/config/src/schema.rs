//! The JSON schema of `ringwall.toml`.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use crate::file::File;

/// The schema, generated from the structs that read the file.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::default().into_generator().into_root_schema_for::<File>();
    RecursiveTransform(without_null_default).transform(&mut schema);
    schema.to_value()
}

/// An absent key has no value in TOML, which knows no null.
fn without_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}
