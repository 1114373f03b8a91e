//! Sizes written for people: `512MiB`, `8GiB`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(pub u64);

/// The text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid size `{0}`; expected a number and a unit, such as `512MiB` or `8GiB`")]
pub struct ByteSizeError(String);

/// Units, largest first, so that display picks the largest that fits.
const UNITS: [(&str, u64); 4] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl ByteSize {
    /// Reads a number with a unit.
    pub fn parse(text: &str) -> Result<Self, ByteSizeError> {
        let error = || ByteSizeError(text.into());
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let number: u64 = digits.parse().map_err(|_| error())?;
        let unit = text.get(digits.len()..).unwrap_or_default().trim();
        let scale = match unit {
            "" | "B" => 1,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?.1,
        };
        number.checked_mul(scale).filter(|bytes| *bytes > 0).map(Self).ok_or_else(error)
    }

    /// About the same size, in a unit of which it has at least ten.
    #[must_use]
    pub fn rounded(self) -> Self {
        let unit = UNITS.iter().find(|(_, scale)| self.0 / 10 >= *scale);
        unit.map_or(self, |(_, scale)| Self(self.0.div_ceil(*scale).saturating_mul(*scale)))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)) {
            Some((name, scale)) => write!(f, "{}{name}", self.0 / scale),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl TryFrom<String> for ByteSize {
    type Error = ByteSizeError;
    fn try_from(text: String) -> Result<Self, ByteSizeError> {
        Self::parse(&text)
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip_and_nonsense_is_refused() {
        for (text, bytes) in [("8GiB", 8 << 30), ("512MiB", 512 << 20), ("17B", 17), ("17", 17)] {
            assert_eq!(ByteSize::parse(text).unwrap().0, bytes);
        }
        assert_eq!(ByteSize::parse("1024MiB").unwrap().to_string(), "1GiB");
        for text in ["", "GiB", "8GB", "-1GiB", "0", "99999999999TiB", "8 G i B"] {
            assert!(ByteSize::parse(text).is_err(), "{text:?}");
        }
    }
}
