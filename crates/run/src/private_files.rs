//! What the end of a run says about files that are private to it, and that the user may look for outside.

use model::{AbsPath, PrivateLayer};

use crate::remedies::is_temporary;

/// Files and programs that are named.
const MOST: usize = 5;

/// Which programs the run has installed, and that the user does not have them outside.
pub(crate) fn installed(layer: &PrivateLayer, programs: &[AbsPath]) -> Option<String> {
    let name = |program: &AbsPath| program.as_path().file_name()?.to_str().map(str::to_owned);
    let whose = match layer {
        PrivateLayer::Kept(_) => "for runs in this workspace only",
        PrivateLayer::Temporary(_) => "for this run only, and gone with it",
    };
    list(programs.iter().filter_map(name).collect()).map(|names| {
        format!(
            "installed {whose}: {names}; to have them outside, install them there, without the sandbox"
        )
    })
}

/// Which files are gone with the private `/tmp`. Names that a program has drawn by lot are not missed.
pub(crate) fn temporary(files: &[AbsPath]) -> Option<String> {
    let named = |file: &&AbsPath| {
        let name = file.as_path().file_name();
        name.is_some_and(|name| !is_temporary(name) && !name.as_encoded_bytes().starts_with(b"."))
    };
    let names = files.iter().filter(named).filter_map(|file| Some(file.as_path().to_str()?.into()));
    list(names.collect()).map(|names| {
        format!("deleted with the private /tmp of the run: {names}; what is to stay belongs in the workspace")
    })
}

fn list(mut names: Vec<String>) -> Option<String> {
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn paths(names: &[&str]) -> Vec<AbsPath> {
        names.iter().map(|name| AbsPath::lexical(Path::new(name)).unwrap()).collect()
    }

    #[test]
    fn files_that_are_gone_are_named_unless_no_one_chose_their_names() {
        let files = paths(&["/tmp/b.log", "/tmp/a.log", "/tmp/tmp.x1", "/tmp/.X0-lock"]);
        assert_eq!(
            temporary(&files).unwrap(),
            "deleted with the private /tmp of the run: /tmp/a.log, /tmp/b.log; what is to stay belongs in \
             the workspace"
        );
        assert_eq!(temporary(&paths(&["/tmp/tmp.x1"])), None);
    }

    #[test]
    fn only_some_programs_are_named() {
        let names =
            ["a", "b", "c", "d", "e", "f", "g"].map(|name| format!("/home/u/.cargo/bin/{name}"));
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let layer = PrivateLayer::Temporary(model::WhyTemporary::InUse);
        let said = installed(&layer, &paths(&names)).unwrap();
        assert!(said.contains("a, b, c, d, e and 2 more"), "{said}");
        assert_eq!(installed(&layer, &[]), None);
    }
}
