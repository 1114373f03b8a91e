//! [`without_secrets`]: the settings of a tool, as a run may see them.
//!
//! A setting whose name says that it is a secret is left out, and addresses lose the name and the
//! password in them. So do comments: what is commented out was a setting once. All other lines stay
//! byte for byte. What cannot be understood gives no copy. Errs on the side of leaving out.

mod lines;
mod xml;

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of names and values, with `=` or `:` between them. An indented line continues the one
    /// before: npm, pip, Mercurial, PHP, Java properties, variables.
    Ini,
    /// Git's: every setting is indented.
    Git,
    /// Cargo's and uv's.
    Toml,
    /// Maven's, and that of `NuGet`.
    Xml,
}

/// What a run sees of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The text.
    pub text: String,
    /// The names of the settings that were left out or changed, without their values.
    pub removed: Vec<String>,
}

/// A text without the values that may be secrets, if it can be understood.
pub fn without_secrets(format: Format, text: &str) -> Option<Shown> {
    if text.contains('\0') {
        return None;
    }
    match format {
        Format::Ini | Format::Git | Format::Toml => lines::shown(format, text),
        Format::Xml => xml::shown(text),
    }
}

/// Parts of names that only secrets have.
const PARTS: &[&str] = &[
    "apikey",
    "api_key",
    "api-key",
    "authtoken",
    "bearer",
    "credential",
    "extraheader",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "private_key",
    "private-key",
    "secret",
    "token",
];

/// Whole words of names.
const WORDS: &[&str] = &[
    "accesskey",
    "auth",
    "authorization",
    "cookie",
    "cookies",
    "goauth",
    "headers",
    "key",
    "keys",
    "login",
    "otp",
    "pass",
    "pw",
    "pwd",
    "username",
];

/// Whether a name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    PARTS.iter().any(|part| lower.contains(part)) || words.any(|word| WORDS.contains(&word))
}

/// Beginnings of tokens of well-known services.
const TOKENS: &[&str] = &[
    "AKIA",
    "ASIA",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pypi-",
    "rubygems_",
    "sk-",
    "xoxb-",
    "xoxp-",
    "cio",
    "dckr_pat_",
];

/// Whether a value is a token by itself, whatever its name is.
fn is_token(value: &str) -> bool {
    let word = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    value
        .split(word)
        .any(|word| word.len() >= 20 && TOKENS.iter().any(|start| word.starts_with(start)))
}

/// Whether a variable of the environment looks like a secret, by its name or by its value. Unlike
/// names of settings, names of variables are words in capitals with underscores between them.
pub(crate) fn is_secret_variable(name: &str, value: &str) -> bool {
    let lower = name.to_lowercase();
    let parts = ["key", "pass", "cookie"].into_iter().chain(PARTS.iter().copied());
    let ending = lower.ends_with("_auth") || lower.ends_with("_pat") || lower.ends_with("_pw");
    let named = ending || parts.into_iter().any(|part| lower.contains(part));
    // An address with a password in it, or a text that names one.
    let holds =
        value.contains("-----BEGIN") || without_users(value).is_some_and(|bare| bare != value);
    named || is_token(value) || holds
}

/// Whether a value is no secret although its name says so: a switch, or a reference to a variable,
/// which the run does not have.
fn is_harmless(value: &str) -> bool {
    let value = value.trim().trim_matches(|c| c == '"' || c == '\'');
    let switches = ["true", "false", "yes", "no", "on", "off", "0", "1", "null"];
    switches.contains(&value) || is_reference(value)
}

fn is_reference(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = name.or_else(|| value.strip_prefix('%')?.strip_suffix('%'));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    name.is_some_and(|name| !name.is_empty() && name.chars().all(plain))
}

/// A text in which addresses have no user, no password and no query. `None` if it has none anyway.
fn without_users(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ',' | '`');
        let (address, others) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let shell = before.to_ascii_lowercase().ends_with("ssh://");
        let bare = bare(address, shell);
        changed |= bare != address;
        result.push_str(before);
        result.push_str(&bare);
        rest = others;
    }
    result.push_str(rest);
    changed.then_some(result)
}

/// What follows `://`, without user and query. The name of a user of ssh is no secret.
fn bare(address: &str, shell: bool) -> String {
    let host_end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let (mut host, mut path) = address.split_at(host_end);
    // A password may have a slash in it. Then what is before that is no host with a port.
    let odd = host.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && !port.bytes().all(|byte| byte.is_ascii_digit()) && !host.contains('@')
    });
    if odd && let Some(at) = address.rfind('@') {
        (host, path) = ("", address.get(at + 1..).unwrap_or_default());
    }
    if let Some((user, name)) = host.rsplit_once('@') {
        let harmless = user.split(':').all(is_reference) || (shell && !user.contains(':'));
        if !harmless {
            host = name;
        }
    }
    let query = path.find('?').filter(|at| {
        let query = path.get(*at..).unwrap_or_default();
        is_secret(query) || is_token(query) || query.contains("sig")
    });
    let path = path.get(..query.unwrap_or(path.len())).unwrap_or_default();
    format!("{host}{path}")
}

#[cfg(test)]
mod tests;
