//! [`GitSettings`]: what of a user's git settings comes along into a run.

/// The user's settings that name no program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSettings {
    /// In the order in which git reads them.
    pub settings: Vec<GitSetting>,
    /// What the user's ignore file says.
    pub ignore: Option<String>,
    /// What the user's attributes file says.
    pub attributes: Option<String>,
    /// How the user signs, if commits or tags are to be signed.
    pub signing: Option<Signing>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case.
    pub section: String,
    /// As it was written.
    pub subsection: Option<String>,
    /// In lower case.
    pub key: String,
    /// `None` without a `=`.
    pub value: Option<String>,
}

/// How a user signs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signing {
    /// Whether every commit is to be signed.
    pub commits: bool,
    /// Whether every tag is to be signed.
    pub tags: bool,
    /// `openpgp`, `x509` or `ssh`.
    pub format: String,
    /// The name of the key; of an SSH key the public key itself.
    pub key: Option<String>,
}
