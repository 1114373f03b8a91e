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

/// TOML has no null: a key that is not set has no default in the schema.
fn without_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}
