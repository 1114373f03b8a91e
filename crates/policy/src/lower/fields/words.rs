//! The words of an identifier.

/// The words in any of the usual spellings, in lower case: `PDFPath1` is `pdf`, `path`, `1`.
pub(super) fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut previous = ' ';
    for (at, &character) in characters.iter().enumerate() {
        let next_is_lower = characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = (character.is_uppercase() && (!previous.is_uppercase() || next_is_lower))
            || character.is_numeric() != previous.is_numeric();
        if begins {
            spaced.push(' ');
        }
        spaced.push(if character.is_alphanumeric() { character } else { ' ' });
        previous = character;
    }
    spaced.split_whitespace().map(str::to_lowercase).collect()
}

/// The singular of a word, as far as looking it up in a list needs it.
pub(super) fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

/// Whether the name means several things.
pub(super) fn is_plural(name: &str) -> bool {
    words(name).last().is_some_and(|word| word.ends_with('s'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_spelling_is_split() {
        for (name, expected) in [
            ("file_path", "file path"),
            ("filePath", "file path"),
            ("FilePath", "file path"),
            ("file-path", "file path"),
            ("FILE_PATH", "file path"),
            ("PDFPath", "pdf path"),
            ("pathToPDF", "path to pdf"),
            ("file1", "file 1"),
            ("path2read", "path 2 read"),
            ("MP3File", "mp 3 file"),
            ("  a..b ", "a b"),
            ("", ""),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }
}
