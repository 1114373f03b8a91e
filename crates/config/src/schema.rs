//! The JSON schema of `ringwall.toml`.

use serde_json::Value;

use crate::file::File;

/// The schema, generated from the structs that read the file.
pub fn schema() -> Value {
    schemars::schema_for!(File).to_value()
}
