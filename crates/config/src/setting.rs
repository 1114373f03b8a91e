//! How a key is written, read and merged.
//!
//! A [`Format`] turns the text of one value into the value that the policy holds. A [`Kind`] says
//! how often a key can be set: once ([`One`]), perhaps never ([`Maybe`]), or as a list ([`List`]).
//! [`Wider`] says which change of a key allows more.

use facts::Places;
use model::Enforcement;
use model::{ByteSize, DomainRule, Level, Origin, Publication, Sourced, Verdict};
use policy::{OnAuditFailure, OnError, PathRule, QuarantineMode, ViolationAction};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Spanned;

use crate::layer::{Layer, Standing};
use crate::load::Problem;
use crate::merge::Widening;
use crate::quarantine;

/// Which change of a key allows more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wider {
    /// A higher value. A limit that is not set is the highest.
    Higher,
    /// A lower value.
    Lower,
    /// Every value, or every entry of a list.
    Always,
    /// No entry of the list: each one narrows.
    Never,
}

impl Wider {
    fn widens<F: Format>(self, old: Option<&F::Value>, new: &F::Value) -> bool {
        match self {
            Self::Higher => old.is_some_and(|old| F::is_above(new, old)),
            Self::Lower => old.is_some_and(|old| F::is_above(old, new)),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// One row of `ringwall policy show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: String,
    /// The value; `None` for an empty list or a key that is not set.
    pub value: Option<Value>,
    /// Where the value is set.
    pub origin: Origin,
}

impl Row {
    fn new<T: Serialize>(key: &str, sourced: &Sourced<T>) -> Self {
        let value = serde_json::to_value(&sourced.value).ok();
        Self { key: key.into(), value, origin: sourced.origin.clone() }
    }

    fn unset(key: &str) -> Self {
        Self { key: key.into(), value: None, origin: Origin::BuiltIn }
    }
}

/// The layer that is being merged, and what was found wrong with it so far.
pub(crate) struct Incoming<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) places: &'a Places,
    pub(crate) ignored: &'a mut Vec<Widening>,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Incoming<'_> {
    /// Reads one value. A value that cannot be read is noted as a problem.
    fn read<F: Format>(&mut self, written: &Spanned<F::Text>) -> Option<Sourced<F::Value>> {
        let origin = self.layer.origin(&written.span());
        match F::parse(written.get_ref(), self.layer, self.places) {
            Ok(value) => Some(Sourced { value, origin }),
            Err(Complaint { text, hint }) => {
                self.problems.push(Problem { origin, text, hint });
                None
            }
        }
    }

    /// Whether a change may be applied. An untrusted layer may not widen.
    fn admits(&mut self, key: &str, text: &impl Serialize, origin: &Origin, widens: bool) -> bool {
        match self.layer.standing {
            Standing::Untrusted if widens => {
                let value = serde_json::to_string(text).unwrap_or_default();
                self.ignored.push(Widening { key: key.into(), value, origin: origin.clone() });
                false
            }
            Standing::Around if widens => false,
            _ => true,
        }
    }
}

/// How many values a key can have, and what the policy holds for it.
pub(crate) trait Kind {
    /// The field of the policy.
    type Field;

    /// Merges what a layer says into the field.
    fn merge(&self, field: &mut Self::Field, key: &str, wider: Wider, from: &mut Incoming<'_>);

    /// The rows of the effective value.
    fn rows(field: &Self::Field, key: &str) -> Vec<Row>;

    /// The effective path rules, for a key that holds some.
    fn paths(field: &Self::Field) -> Vec<(&PathRule, &Origin)>;
}

/// A key with exactly one value. A later layer replaces it.
#[derive(Deserialize, Serialize)]
#[serde(
    transparent,
    bound(deserialize = "F::Text: Deserialize<'de>", serialize = "F::Text: Serialize")
)]
pub(crate) struct One<F: Format>(Option<Spanned<F::Text>>);

/// A key with one value or none. A later layer replaces it.
#[derive(Deserialize, Serialize)]
#[serde(
    transparent,
    bound(deserialize = "F::Text: Deserialize<'de>", serialize = "F::Text: Serialize")
)]
pub(crate) struct Maybe<F: Format>(Option<Spanned<F::Text>>);

/// A key with a list of values. A later layer extends it.
#[derive(Deserialize, Serialize)]
#[serde(
    transparent,
    bound(deserialize = "F::Text: Deserialize<'de>", serialize = "F::Text: Serialize")
)]
pub(crate) struct List<F: Format>(Vec<Spanned<F::Text>>);

impl<F: Format> Kind for One<F> {
    type Field = Sourced<F::Value>;

    fn merge(&self, field: &mut Self::Field, key: &str, wider: Wider, from: &mut Incoming<'_>) {
        let Some(written) = &self.0 else { return };
        let Some(new) = from.read::<F>(written) else { return };
        let widens = wider.widens::<F>(Some(&field.value), &new.value);
        if from.admits(key, written.get_ref(), &new.origin, widens) {
            *field = new;
        }
    }

    fn rows(field: &Self::Field, key: &str) -> Vec<Row> {
        vec![Row::new(key, field)]
    }

    fn paths(field: &Self::Field) -> Vec<(&PathRule, &Origin)> {
        paths_of::<F>(std::slice::from_ref(field))
    }
}

impl<F: Format> Kind for Maybe<F> {
    type Field = Option<Sourced<F::Value>>;

    fn merge(&self, field: &mut Self::Field, key: &str, wider: Wider, from: &mut Incoming<'_>) {
        let Some(written) = &self.0 else { return };
        let Some(new) = from.read::<F>(written) else { return };
        let widens = wider.widens::<F>(field.as_ref().map(|old| &old.value), &new.value);
        if from.admits(key, written.get_ref(), &new.origin, widens) {
            *field = Some(new);
        }
    }

    fn rows(field: &Self::Field, key: &str) -> Vec<Row> {
        vec![field.as_ref().map_or_else(|| Row::unset(key), |sourced| Row::new(key, sourced))]
    }

    fn paths(field: &Self::Field) -> Vec<(&PathRule, &Origin)> {
        paths_of::<F>(field.as_slice())
    }
}

impl<F: Format> Kind for List<F> {
    type Field = Vec<Sourced<F::Value>>;

    fn merge(&self, field: &mut Self::Field, key: &str, wider: Wider, from: &mut Incoming<'_>) {
        for written in &self.0 {
            let Some(new) = from.read::<F>(written) else { continue };
            // An entry that is already in the list keeps its first origin.
            if !field.iter().any(|known| known.value == new.value)
                && from.admits(
                    key,
                    written.get_ref(),
                    &new.origin,
                    wider.widens::<F>(None, &new.value),
                )
            {
                field.push(new);
            }
        }
    }

    fn rows(field: &Self::Field, key: &str) -> Vec<Row> {
        if field.is_empty() {
            return vec![Row::unset(key)];
        }
        field.iter().map(|entry| Row::new(key, entry)).collect()
    }

    fn paths(field: &Self::Field) -> Vec<(&PathRule, &Origin)> {
        paths_of::<F>(field)
    }
}

fn paths_of<F: Format>(entries: &[Sourced<F::Value>]) -> Vec<(&PathRule, &Origin)> {
    entries.iter().filter_map(|entry| Some((F::path(&entry.value)?, &entry.origin))).collect()
}

impl<F: Format> Default for One<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: Format> Default for Maybe<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: Format> Default for List<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// In the schema, a key looks like its text: spans and presence do not show.
macro_rules! schema_of {
    ($Kind:ident, $Shape:ty) => {
        impl<F: Format> JsonSchema for $Kind<F> {
            fn inline_schema() -> bool {
                <$Shape>::inline_schema()
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$Shape>::schema_name()
            }
            fn schema_id() -> std::borrow::Cow<'static, str> {
                <$Shape>::schema_id()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$Shape>::json_schema(generator)
            }
        }
    };
}

schema_of!(One, F::Text);
schema_of!(Maybe, F::Text);
schema_of!(List, Vec<F::Text>);

/// Why a value cannot be used.
pub(crate) struct Complaint {
    text: String,
    hint: Option<String>,
}

impl Complaint {
    fn new(text: impl ToString) -> Self {
        Self { text: text.to_string(), hint: None }
    }
}

/// How one value is written, and what it means.
pub(crate) trait Format {
    /// The value in the file.
    type Text: DeserializeOwned + Serialize + JsonSchema;
    /// The value in the policy.
    type Value: PartialEq + Serialize;

    /// Reads a value from a layer.
    fn parse(text: &Self::Text, layer: &Layer, places: &Places) -> Result<Self::Value, Complaint>;

    /// Whether one value is higher than another. Values without an order are never higher.
    fn is_above(_this: &Self::Value, _other: &Self::Value) -> bool {
        false
    }

    /// The value as a path rule that can fail to match anything.
    fn path(_value: &Self::Value) -> Option<&PathRule> {
        None
    }
}

/// Values that the file holds as they are.
macro_rules! plain_formats {
    ($($T:ty),* $(,)?) => {$(
        impl Format for $T {
            type Text = $T;
            type Value = $T;

            fn parse(text: &$T, _: &Layer, _: &Places) -> Result<$T, Complaint> {
                Ok(*text)
            }

            fn is_above(this: &$T, other: &$T) -> bool {
                this > other
            }
        }
    )*};
}

plain_formats!(
    bool,
    u16,
    u32,
    u64,
    Enforcement,
    Level,
    OnAuditFailure,
    OnError,
    QuarantineMode,
    Verdict,
    ViolationAction,
);

/// A path or a pattern of paths.
pub(crate) enum Paths {}

impl Format for Paths {
    type Text = String;
    type Value = PathRule;

    fn parse(text: &String, layer: &Layer, places: &Places) -> Result<PathRule, Complaint> {
        PathRule::parse(text, layer.base(), &places.home).map_err(Complaint::new)
    }

    fn path(value: &PathRule) -> Option<&PathRule> {
        Some(value)
    }
}

/// The quarantine: one directory that may be writable.
pub(crate) enum QuarantineDir {}

impl Format for QuarantineDir {
    type Text = String;
    type Value = PathRule;

    fn parse(text: &String, layer: &Layer, places: &Places) -> Result<PathRule, Complaint> {
        let rule = Paths::parse(text, layer, places)?;
        if rule.is_pattern() {
            return Err(Complaint::new("the quarantine must be one directory, not a pattern"));
        }
        if let Some(place) = rule.prefix(&model::AbsPath::root())
            && let Some(why) = quarantine::unfit(&place, places)
        {
            let hint = "use a separate directory, such as `~/work/quarantine`".to_owned();
            let text = format!("`{text}` cannot be the quarantine: {why}");
            return Err(Complaint { text, hint: Some(hint) });
        }
        Ok(rule)
    }
}

/// A host or the subdomains of one.
pub(crate) enum Domains {}

impl Format for Domains {
    type Text = String;
    type Value = DomainRule;

    fn parse(text: &String, _: &Layer, _: &Places) -> Result<DomainRule, Complaint> {
        DomainRule::parse(text).map_err(Complaint::new)
    }
}

/// A port that leads to a server inside.
pub(crate) enum Publish {}

impl Format for Publish {
    type Text = String;
    type Value = Publication;

    fn parse(text: &String, _: &Layer, _: &Places) -> Result<Publication, Complaint> {
        Publication::parse(text).map_err(Complaint::new)
    }
}

/// The name of an environment variable.
pub(crate) enum Variable {}

impl Format for Variable {
    type Text = String;
    type Value = String;

    fn parse(text: &String, _: &Layer, _: &Places) -> Result<String, Complaint> {
        if text.is_empty() || text.contains(['=', '\0']) {
            return Err(Complaint::new(format!("`{text}` is not a valid variable name")));
        }
        Ok(text.clone())
    }
}

/// A number of bytes, written with its unit.
pub(crate) enum Size {}

impl Format for Size {
    type Text = String;
    type Value = ByteSize;

    fn parse(text: &String, _: &Layer, _: &Places) -> Result<ByteSize, Complaint> {
        ByteSize::parse(text).map_err(Complaint::new)
    }

    fn is_above(this: &ByteSize, other: &ByteSize) -> bool {
        this > other
    }
}
