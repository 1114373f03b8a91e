//! XML, as far as settings use it.

use super::{Shown, is_harmless, is_secret, is_token, without_users};

/// Elements that hold secrets and nothing that a run needs.
const HOLDERS: &[&str] =
    &["apikeys", "clientcertificates", "packagesourcecredentials", "proxies", "servers"];

/// Goes through the elements. Comments, declarations of documents and raw data are not expected of
/// settings that a tool wrote; comments are left out, the others give no copy.
pub(super) fn shown(text: &str) -> Option<Shown> {
    let mut result = Shown { text: String::new(), removed: Vec::new() };
    let mut open: Vec<(String, bool)> = Vec::new();
    let mut filled = false;
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.is_empty() {
        let hidden = open.iter().any(|(_, hidden)| *hidden);
        let Some(after) = rest.strip_prefix('<') else {
            let (plain, others) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
            if !hidden {
                text_of(plain, &open, &mut result);
            } else if !plain.trim().is_empty() {
                filled = true;
            }
            rest = others;
            continue;
        };
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->")?.1;
            continue;
        }
        let end = end_of_tag(after)?;
        let (tag, others) = after.split_at(end);
        rest = others.strip_prefix('>')?;
        let whole = format!("<{tag}>");
        if tag.starts_with('!') {
            return None;
        }
        if tag.starts_with('?') {
            result.text.push_str(&whole);
        } else if let Some(name) = tag.strip_prefix('/') {
            let (begun, held) = open.pop()?;
            if begun != name.trim() {
                return None;
            }
            if held && std::mem::take(&mut filled) {
                result.removed.push(begun);
            }
            if !hidden {
                result.text.push_str(&whole);
            }
        } else {
            let alone = tag.ends_with('/');
            let name: String =
                tag.chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
            let secret = !hidden && is_held(&name, tag);
            // An element that is left out counts if there is anything in it.
            filled |= hidden;
            if secret && alone {
                result.removed.push(described(&name, tag));
            }
            if !hidden && !secret {
                match without_users(&whole) {
                    Some(bare) => {
                        result.removed.push(described(&name, tag));
                        result.text.push_str(&bare);
                    }
                    None => result.text.push_str(&whole),
                }
            }
            if !alone {
                open.push((name, secret));
            }
        }
    }
    open.is_empty().then_some(result)
}

fn text_of(plain: &str, open: &[(String, bool)], result: &mut Shown) {
    let name = open.last().map_or("a value", |(name, _)| name.as_str());
    if is_token(plain) {
        result.removed.push(name.to_owned());
    } else if let Some(bare) = without_users(plain) {
        result.removed.push(name.to_owned());
        result.text.push_str(&bare);
    } else {
        result.text.push_str(plain);
    }
}

/// Whether an element is left out: by its name, or by what its attributes say.
fn is_held(name: &str, tag: &str) -> bool {
    let lower = name.to_lowercase();
    HOLDERS.contains(&lower.as_str())
        || (is_secret(name) && name != "key")
        || attributes(tag).any(|(key, value)| match key.to_lowercase().as_str() {
            "key" | "name" => is_secret(value),
            _ => is_token(value) || (is_secret(key) && !is_harmless(value)),
        })
}

fn described(name: &str, tag: &str) -> String {
    let key = attributes(tag).find(|(key, _)| ["key", "name"].contains(key));
    match key {
        Some((_, value)) if !is_token(value) && value.len() < 60 => format!("{name} {value}"),
        _ => name.to_owned(),
    }
}

fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = tag;
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once('=')?;
        let key = before.rsplit(char::is_whitespace).find(|word| !word.is_empty())?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, others) = after.get(1..)?.split_once(quote)?;
        rest = others;
        Some((key, value))
    })
}

/// Where a tag ends; a quoted `>` does not end it.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return Some(at),
            (None, '<') => return None,
            _ => {}
        }
    }
    None
}
