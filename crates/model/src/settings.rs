//! How an agent's settings can switch hooks off.

/// A key of an agent's settings that switches hooks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffSwitch {
    /// Where it stands, as a JSON pointer.
    pub pointer: &'static str,
    /// The value that leaves hooks on. Anything else counts as off; an absent key is on.
    pub on: bool,
}
