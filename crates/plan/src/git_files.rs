//! Git's settings for a run: the user's own, as far as they name no program.

use std::path::Path;

use model::{AbsPath, GitSetting, Signing};
use policy::Context;

use super::Machine;

/// A program that says why nothing can be signed.
const CANNOT_SIGN: &str = "/etc/ringwall-cannot-sign";

/// The files that git reads in a run.
pub(super) fn texts(context: &Context, machine: &Machine) -> Vec<(AbsPath, String)> {
    let home = &context.home;
    let at = |name: &str| home.join(".config".as_ref()).join("git".as_ref()).join(name.as_ref());
    let mut texts = Vec::new();
    let config = config(context, machine);
    if !config.is_empty() {
        texts.push((home.join(".gitconfig".as_ref()), config));
    }
    let own = [("ignore", &machine.git.ignore), ("attributes", &machine.git.attributes)];
    for (name, text) in own {
        texts.extend(text.as_ref().map(|text| (at(name), text.clone())));
    }
    if let (Some(signing), Ok(path)) =
        (&machine.git.signing, AbsPath::lexical(Path::new(CANNOT_SIGN)))
        && !has_agent(machine, signing)
    {
        texts.push((path, cannot_sign(signing)));
    }
    texts
}

/// The user's settings. In a linked worktree, git must not run maintenance on the repository that the
/// worktree belongs to.
fn config(context: &Context, machine: &Machine) -> String {
    let mut text = String::new();
    let mut put = |section: &str, subsection: Option<&str>, key: &str, value: Option<&str>| {
        let heading = match subsection {
            None => format!("[{section}]"),
            Some(sub) => format!("[{section} \"{}\"]", escaped(sub)),
        };
        let value = value.map_or_else(String::new, |value| format!(" = \"{}\"", escaped(value)));
        text.push_str(&format!("{heading}\n\t{key}{value}\n"));
    };
    for GitSetting { section, subsection, key, value } in &machine.git.settings {
        put(section, subsection.as_deref(), key, value.as_deref());
    }
    let file = |name: &str| format!("{}/.config/git/{name}", context.home);
    if machine.git.ignore.is_some() {
        put("core", None, "excludesFile", Some(&file("ignore")));
    }
    if machine.git.attributes.is_some() {
        put("core", None, "attributesFile", Some(&file("attributes")));
    }
    if let Some(signing) = &machine.git.signing {
        for (section, _) in
            [("commit", signing.commits), ("tag", signing.tags)].into_iter().filter(|it| it.1)
        {
            put(section, None, "gpgSign", Some("true"));
        }
        put("gpg", None, "format", Some(&signing.format));
        // Without a key git would look for one before it asks the program.
        let key = signing.key.as_deref().unwrap_or("key::none");
        put("user", None, "signingKey", Some(key));
        if !has_agent(machine, signing) {
            put("gpg", None, "program", Some(CANNOT_SIGN));
            for format in ["openpgp", "x509", "ssh"] {
                put("gpg", Some(format), "program", Some(CANNOT_SIGN));
            }
        }
    }
    if machine.worktree.is_some() {
        put("gc", None, "auto", Some("0"));
        put("maintenance", None, "auto", Some("false"));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Whether the run may ask an agent to sign. Only that for SSH keys needs nothing but its socket.
fn has_agent(machine: &Machine, signing: &Signing) -> bool {
    signing.format == "ssh" && signing.key.is_some() && agents_socket(machine).is_some()
}

/// The socket of the user's SSH agent, if it is granted.
pub(super) fn agents_socket(machine: &Machine) -> Option<&Path> {
    let socket = machine.environment.iter().find(|(name, _)| name == "SSH_AUTH_SOCK");
    let socket = Path::new(&socket?.1);
    machine
        .unix_grants
        .iter()
        .any(|grant| socket.starts_with(grant.path.as_path()))
        .then_some(socket)
}

/// A script that git runs in place of the program that signs. What it says is shown by git.
fn cannot_sign(signing: &Signing) -> String {
    let way = if signing.format == "ssh" {
        "`ringwall grant unix ssh-agent` lets a run sign with the keys in your SSH agent"
    } else {
        "commit outside of the sandbox; only SSH keys can sign in a run, with `ringwall grant unix \
         ssh-agent`"
    };
    let lines = [
        // Git puts a word before the first line.
        "",
        "ringwall: your settings ask for a signature, and the key is not in the sandbox",
        &format!("hint: {way}"),
        "hint: `git commit --no-gpg-sign` makes a commit without a signature",
    ];
    let print = |line: &&str| format!("printf '%s\\n' '{line}' >&2\n");
    let printed: String = lines.iter().map(print).collect();
    format!("#!/bin/sh\n{printed}exit 1\n")
}
