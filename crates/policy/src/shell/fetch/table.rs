//! The programs that bring content from outside to disk, one row each.

use shell::{Command, Grammar, Word};

use super::super::git;
use super::super::options::{exact, gnu};

/// A program, or one of its subcommands.
pub(super) struct Row {
    programs: &'static [&'static str],
    /// The words that pick the subcommand.
    verbs: &'static [&'static str],
    /// Options between the program and the subcommand that take a value.
    global: Grammar,
    /// Options behind it.
    pub(super) grammar: Grammar,
    pub(super) shape: Shape,
    /// Options that name a second destination.
    pub(super) other_dirs: &'static [&'static str],
    /// Whether what follows `--` belongs to another program.
    pub(super) dashes_end_operands: bool,
}

/// How a program names its destination.
pub(super) enum Shape {
    /// `SOURCE [DESTINATION]`.
    Clone,
    /// In options.
    Options(Options),
    /// `SOURCE… DESTINATION`, where a source can be remote.
    Copy {
        /// What a remote place looks like.
        remote: fn(&str) -> bool,
    },
    /// curl has a grammar of its own.
    Curl,
    /// No option says where to put it.
    Refused {
        /// What to do instead.
        instead: &'static str,
    },
    /// No option says where to put it, and it fetches only with one of these options.
    RefusedWith {
        /// The options.
        options: &'static [&'static str],
        /// What to do instead.
        instead: &'static str,
    },
    /// Into this repository, where the first operand is an address and no configured name.
    FromUrl {
        /// What to do instead.
        instead: &'static str,
    },
}

/// Destinations in options.
pub(super) struct Options {
    /// Options that name a file.
    pub(super) files: &'static [&'static str],
    /// Options that name the directory for everything.
    pub(super) dirs: &'static [&'static str],
    /// Options that name a directory of its own.
    pub(super) named_dirs: &'static [&'static str],
    /// Whether a relative file lands below the directory.
    pub(super) files_below_dir: bool,
    /// Options without which nothing comes from outside; empty: it always does.
    pub(super) only_with: &'static [&'static str],
    /// Options with which nothing lands.
    pub(super) none_with: &'static [&'static str],
    /// Whether it fetches only when given something to fetch.
    pub(super) needs_operand: bool,
    /// Options without which nothing lands unless a file is named; empty: it always lands.
    pub(super) lands_with: &'static [&'static str],
    /// What happens without any of them.
    pub(super) default: Otherwise,
}

/// Where content lands when no option says so, and how to change that.
#[derive(Clone, Copy)]
pub(super) enum Otherwise {
    /// To standard output.
    Output,
    /// To the current directory; this option goes right behind the program.
    Behind(&'static str),
    /// To the current directory; this option goes to the end.
    AtEnd(&'static str),
    /// To a file named after the address; this option goes to the end.
    FileAtEnd(&'static str),
}

const NO_GLOBAL: Grammar = Grammar::PLAIN;
const OPTIONS: Options = Options {
    files: &[],
    dirs: &[],
    named_dirs: &[],
    files_below_dir: false,
    only_with: &[],
    none_with: &["--help", "--version", "-h"],
    needs_operand: false,
    lands_with: &[],
    default: Otherwise::Output,
};

const fn row(
    programs: &'static [&'static str],
    verbs: &'static [&'static str],
    grammar: Grammar,
    shape: Shape,
) -> Row {
    Row {
        programs,
        verbs,
        global: NO_GLOBAL,
        grammar,
        shape,
        other_dirs: &[],
        dashes_end_operands: false,
    }
}

const CLONE_OPTIONS: Grammar = Grammar {
    short: "jobuc",
    long: &[
        "jobs",
        "template",
        "reference",
        "reference-if-able",
        "origin",
        "branch",
        "upload-pack",
        "depth",
        "shallow-since",
        "shallow-exclude",
        "separate-git-dir",
        "ref-format",
        "config",
        "server-option",
        "filter",
        "bundle-uri",
        "revision",
    ],
    flags: &[
        "verbose",
        "quiet",
        "no-checkout",
        "local",
        "shared",
        "progress",
        "reject-shallow",
        "bare",
        "mirror",
        "no-hardlinks",
        "dissociate",
        "single-branch",
        "no-tags",
        "shallow-submodules",
        "also-filter-submodules",
        "remote-submodules",
        "sparse",
        "recurse-submodules",
        "recursive",
    ],
    abbreviates: true,
    stops_at_operand: false,
};
const GH: Grammar = exact(
    "RDOpAnbuht",
    &[
        "repo",
        "dir",
        "output",
        "pattern",
        "archive",
        "name",
        "branch",
        "upstream-remote-name",
        "hostname",
    ],
);
const WGET: Grammar = gnu(
    "aABDeiIloOPQRtTUwX",
    &[
        "output-document",
        "directory-prefix",
        "input-file",
        "output-file",
        "append-output",
        "execute",
        "base",
        "tries",
        "timeout",
        "wait",
        "quota",
        "user-agent",
        "header",
        "post-data",
        "post-file",
        "user",
        "password",
        "load-cookies",
        "save-cookies",
        "level",
        "accept",
        "reject",
        "domains",
        "exclude-domains",
        "include-directories",
        "exclude-directories",
        "referer",
        "limit-rate",
        "certificate",
        "private-key",
        "ca-certificate",
        "body-data",
        "body-file",
        "method",
        "config",
    ],
);
const CURL: Grammar = Grammar {
    short: "AbcCdDeEFhHKmoPQrtTuUwxXyYz",
    long: &[
        "output",
        "output-dir",
        "config",
        "dump-header",
        "cookie-jar",
        "trace",
        "trace-ascii",
        "stderr",
        "etag-save",
        "etag-compare",
        "hsts",
        "alt-svc",
        "libcurl",
        "header",
        "data",
        "data-raw",
        "data-binary",
        "data-urlencode",
        "data-ascii",
        "json",
        "form",
        "form-string",
        "user",
        "user-agent",
        "request",
        "url",
        "proxy",
        "proxy-user",
        "cookie",
        "referer",
        "cert",
        "key",
        "cacert",
        "capath",
        "max-time",
        "connect-timeout",
        "retry",
        "retry-delay",
        "retry-max-time",
        "range",
        "upload-file",
        "write-out",
        "resolve",
        "connect-to",
        "interface",
        "limit-rate",
        "max-filesize",
        "max-redirs",
        "ciphers",
        "tls-max",
        "unix-socket",
        "netrc-file",
        "noproxy",
        "oauth2-bearer",
        "pass",
        "pubkey",
        "quote",
        "socks5",
        "socks5-hostname",
        "speed-limit",
        "speed-time",
        "time-cond",
        "aws-sigv4",
        "continue-at",
        "create-file-mode",
        "variable",
        "url-query",
        "rate",
        "dns-servers",
        "doh-url",
        "expect100-timeout",
        "local-port",
    ],
    flags: &["output-null"],
    abbreviates: false,
    stops_at_operand: false,
};
const SCP: Grammar = exact("cDFiJloPSX", &[]);
const RSYNC: Grammar = gnu(
    "efBTM",
    &[
        "rsh",
        "exclude",
        "include",
        "exclude-from",
        "include-from",
        "files-from",
        "out-format",
        "log-file",
        "log-file-format",
        "partial-dir",
        "backup-dir",
        "temp-dir",
        "compare-dest",
        "copy-dest",
        "link-dest",
        "bwlimit",
        "port",
        "password-file",
        "rsync-path",
        "suffix",
        "filter",
        "max-size",
        "min-size",
        "timeout",
        "contimeout",
        "block-size",
        "compress-level",
        "chmod",
        "chown",
        "modify-window",
        "info",
        "debug",
        "protocol",
        "iconv",
        "checksum-choice",
    ],
);
const IN_QUARANTINE: &str = "clone the repository into quarantine first and run it there";
const FORK: &str = "fork without --clone, then clone into quarantine";
const SUBMODULE: &str = "a submodule must be inside the repository; ask the user to add it";
const FROM_URL: &str = "clone that repository into quarantine and look at it there";

const ROWS: &[Row] = &[
    Row {
        other_dirs: &["--separate-git-dir"],
        ..row(&["git"], &["clone"], CLONE_OPTIONS, Shape::Clone)
    },
    row(
        &["git"],
        &["submodule", "add"],
        gnu("b", &["name", "reference", "depth", "branch"]),
        Shape::Refused { instead: SUBMODULE },
    ),
    row(
        &["git"],
        &["fetch"],
        gnu("ojo", &["depth", "upload-pack", "refmap", "jobs", "filter"]),
        Shape::FromUrl { instead: FROM_URL },
    ),
    row(
        &["git"],
        &["pull"],
        gnu("sXo", &["depth", "upload-pack", "strategy", "strategy-option", "filter"]),
        Shape::FromUrl { instead: FROM_URL },
    ),
    row(
        &["git"],
        &["archive"],
        gnu("o", &["output", "remote", "exec", "format", "prefix"]),
        Shape::Options(Options { files: &["-o", "--output"], only_with: &["--remote"], ..OPTIONS }),
    ),
    row(
        &["git"],
        &["svn", "clone"],
        gnu("rTtb", &["revision", "trunk", "tags", "branches", "prefix"]),
        Shape::Clone,
    ),
    row(&["git"], &["p4", "clone"], gnu("", &["destination", "branch"]), Shape::Clone),
    Row { dashes_end_operands: true, ..row(&["gh"], &["repo", "clone"], GH, Shape::Clone) },
    Row { dashes_end_operands: true, ..row(&["gh"], &["gist", "clone"], GH, Shape::Clone) },
    Row { dashes_end_operands: true, ..row(&["glab"], &["repo", "clone"], GH, Shape::Clone) },
    row(
        &["gh"],
        &["repo", "fork"],
        GH,
        Shape::RefusedWith { options: &["--clone"], instead: FORK },
    ),
    row(
        &["gh"],
        &["repo", "create"],
        GH,
        Shape::RefusedWith { options: &["-c", "--clone"], instead: FORK },
    ),
    row(&["gh"], &["pr", "checkout"], GH, Shape::Refused { instead: IN_QUARANTINE }),
    row(&["glab"], &["mr", "checkout"], GH, Shape::Refused { instead: IN_QUARANTINE }),
    row(
        &["gh"],
        &["release", "download"],
        GH,
        Shape::Options(Options {
            files: &["-O", "--output"],
            dirs: &["-D", "--dir"],
            default: Otherwise::AtEnd("-D"),
            ..OPTIONS
        }),
    ),
    row(
        &["gh"],
        &["run", "download"],
        GH,
        Shape::Options(Options {
            dirs: &["-D", "--dir"],
            default: Otherwise::AtEnd("-D"),
            ..OPTIONS
        }),
    ),
    row(&["curl"], &[], CURL, Shape::Curl),
    row(
        &["wget", "wget2"],
        &[],
        WGET,
        Shape::Options(Options {
            files: &["-O", "--output-document"],
            dirs: &["-P", "--directory-prefix"],
            none_with: &["--spider", "--version", "-V", "--help", "-h"],
            default: Otherwise::Behind("-P"),
            ..OPTIONS
        }),
    ),
    row(
        &["aria2c"],
        &[],
        gnu("doijxskm", &["dir", "out", "input-file", "conf-path"]),
        Shape::Options(Options {
            files: &["-o", "--out"],
            dirs: &["-d", "--dir"],
            files_below_dir: true,
            none_with: &["--version", "-v", "--help", "-h"],
            default: Otherwise::Behind("-d"),
            ..OPTIONS
        }),
    ),
    row(
        &["axel"],
        &[],
        gnu("onsTHU", &["output"]),
        Shape::Options(Options {
            files: &["-o", "--output"],
            default: Otherwise::FileAtEnd("-o"),
            ..OPTIONS
        }),
    ),
    row(
        &["wcurl"],
        &[],
        exact("o", &["output", "curl-options"]),
        Shape::Options(Options {
            files: &["-o", "--output"],
            default: Otherwise::FileAtEnd("-o"),
            ..OPTIONS
        }),
    ),
    row(
        &["yt-dlp", "youtube-dl"],
        &[],
        exact(
            "oPfrSIu",
            &["output", "paths", "format", "format-sort", "username", "password", "playlist-items"],
        ),
        Shape::Options(Options {
            files: &["-o", "--output"],
            dirs: &["-P", "--paths"],
            files_below_dir: true,
            none_with: &[
                "--version",
                "-h",
                "--help",
                "-F",
                "--list-formats",
                "-j",
                "--dump-json",
                "-s",
                "--simulate",
            ],
            default: Otherwise::Behind("-P"),
            ..OPTIONS
        }),
    ),
    row(
        &["gallery-dl"],
        &[],
        exact("dDo", &["destination", "directory"]),
        Shape::Options(Options {
            dirs: &["-d", "--destination", "-D", "--directory"],
            default: Otherwise::Behind("-d"),
            ..OPTIONS
        }),
    ),
    row(
        &["gdown"],
        &[],
        exact("O", &["output"]),
        Shape::Options(Options {
            files: &["-O", "--output"],
            default: Otherwise::FileAtEnd("-O"),
            ..OPTIONS
        }),
    ),
    row(
        &["http", "https", "xh", "xhs"],
        &[],
        exact("oaA", &["output", "auth", "auth-type", "session"]),
        Shape::Options(Options {
            files: &["-o", "--output"],
            lands_with: &["-d", "--download"],
            default: Otherwise::FileAtEnd("-o"),
            ..OPTIONS
        }),
    ),
    row(&["scp"], &[], SCP, Shape::Copy { remote: is_remote }),
    row(&["rsync"], &[], RSYNC, Shape::Copy { remote: is_remote }),
    row(
        &["sftp"],
        &[],
        exact("BbcDFiJloPRS", &[]),
        Shape::Refused { instead: "use scp with a destination in quarantine" },
    ),
    row(
        &["lftp", "ftp", "ncftpget", "tftp"],
        &[],
        Grammar::PLAIN,
        Shape::Refused { instead: "use curl with a destination in quarantine" },
    ),
    row(
        &["svn"],
        &["checkout"],
        exact("r", &["revision", "depth", "username", "password", "config-dir", "config-option"]),
        Shape::Clone,
    ),
    row(
        &["svn"],
        &["co"],
        exact("r", &["revision", "depth", "username", "password", "config-dir", "config-option"]),
        Shape::Clone,
    ),
    row(
        &["svn"],
        &["export"],
        exact("r", &["revision", "depth", "username", "password", "config-dir", "config-option"]),
        Shape::Clone,
    ),
    row(
        &["hg"],
        &["clone"],
        exact("urbe", &["updaterev", "rev", "branch", "ssh", "remotecmd"]),
        Shape::Clone,
    ),
    row(&["bzr", "brz"], &["branch"], exact("r", &["revision"]), Shape::Clone),
    row(&["fossil"], &["clone"], exact("", &[]), Shape::Clone),
    row(&["darcs"], &["get"], exact("", &[]), Shape::Clone),
    row(&["jj"], &["git", "clone"], exact("", &["remote", "depth"]), Shape::Clone),
    row(&["degit", "tiged", "giget"], &[], exact("", &["mode"]), Shape::Clone),
    row(&["npx"], &["degit"], exact("", &["mode"]), Shape::Clone),
    row(&["npx"], &["tiged"], exact("", &["mode"]), Shape::Clone),
    row(&["npx"], &["giget"], exact("", &["mode"]), Shape::Clone),
    row(
        &["pip", "pip3"],
        &["download"],
        exact(
            "drci",
            &[
                "dest",
                "destination-dir",
                "destination-directory",
                "requirement",
                "constraint",
                "index-url",
                "extra-index-url",
                "platform",
                "python-version",
                "implementation",
                "abi",
                "find-links",
            ],
        ),
        PIP,
    ),
    row(
        &["python", "python3"],
        &["-m", "pip", "download"],
        exact(
            "drci",
            &[
                "dest",
                "destination-dir",
                "destination-directory",
                "requirement",
                "constraint",
                "index-url",
            ],
        ),
        PIP,
    ),
    row(
        &["uv"],
        &["pip", "download"],
        exact("drci", &["dest", "destination-dir", "requirement"]),
        PIP,
    ),
    row(
        &["npm", "pnpm"],
        &["pack"],
        exact("", &["pack-destination", "workspace"]),
        Shape::Options(Options {
            dirs: &["--pack-destination"],
            needs_operand: true,
            default: Otherwise::AtEnd("--pack-destination"),
            ..OPTIONS
        }),
    ),
    row(
        &["docker", "podman", "nerdctl"],
        &["cp"],
        exact("", &[]),
        Shape::Copy { remote: is_container },
    ),
    row(
        &["docker", "podman", "nerdctl"],
        &["save"],
        exact("o", &["output"]),
        Shape::Options(Options { files: &["-o", "--output"], ..OPTIONS }),
    ),
    row(
        &["docker", "podman", "nerdctl"],
        &["export"],
        exact("o", &["output"]),
        Shape::Options(Options { files: &["-o", "--output"], ..OPTIONS }),
    ),
    row(
        &["kubectl", "oc"],
        &["cp"],
        exact("cn", &["container", "namespace"]),
        Shape::Copy { remote: is_pod },
    ),
    row(
        &["oras"],
        &["pull"],
        exact("o", &["output"]),
        Shape::Options(Options {
            dirs: &["-o", "--output"],
            default: Otherwise::AtEnd("-o"),
            ..OPTIONS
        }),
    ),
    row(
        &["aws"],
        &["s3", "cp"],
        exact("", &["exclude", "include", "region", "profile"]),
        Shape::Copy { remote: is_bucket },
    ),
    row(
        &["aws"],
        &["s3", "mv"],
        exact("", &["exclude", "include", "region", "profile"]),
        Shape::Copy { remote: is_bucket },
    ),
    row(
        &["aws"],
        &["s3", "sync"],
        exact("", &["exclude", "include", "region", "profile"]),
        Shape::Copy { remote: is_bucket },
    ),
    row(&["gsutil"], &["cp"], exact("a", &[]), Shape::Copy { remote: is_bucket }),
    row(&["gsutil"], &["rsync"], exact("x", &[]), Shape::Copy { remote: is_bucket }),
    row(
        &["gcloud"],
        &["storage", "cp"],
        exact("", &["project"]),
        Shape::Copy { remote: is_bucket },
    ),
    row(
        &["gcloud"],
        &["storage", "rsync"],
        exact("", &["project"]),
        Shape::Copy { remote: is_bucket },
    ),
    row(
        &["gcloud"],
        &["compute", "scp"],
        exact("", &["zone", "project"]),
        Shape::Copy { remote: is_remote },
    ),
    row(
        &["az"],
        &["storage", "blob", "download"],
        exact("cnf", &["container-name", "name", "file", "account-name", "account-key"]),
        Shape::Options(Options { files: &["-f", "--file"], ..OPTIONS }),
    ),
    row(
        &["az"],
        &["storage", "blob", "download-batch"],
        exact("ds", &["destination", "source", "pattern", "account-name"]),
        Shape::Options(Options { dirs: &["-d", "--destination"], ..OPTIONS }),
    ),
    row(&["azcopy"], &["copy"], exact("", &[]), Shape::Copy { remote: is_address }),
    row(
        &["rclone"],
        &["copy"],
        exact("", &["config", "transfers", "include", "exclude"]),
        Shape::Copy { remote: is_remote },
    ),
    row(
        &["rclone"],
        &["copyto"],
        exact("", &["config", "transfers", "include", "exclude"]),
        Shape::Copy { remote: is_remote },
    ),
    row(
        &["rclone"],
        &["sync"],
        exact("", &["config", "transfers", "include", "exclude"]),
        Shape::Copy { remote: is_remote },
    ),
    row(
        &["rclone"],
        &["move"],
        exact("", &["config", "transfers", "include", "exclude"]),
        Shape::Copy { remote: is_remote },
    ),
    row(&["s3cmd", "s5cmd"], &["get"], exact("", &[]), Shape::Copy { remote: is_bucket }),
    row(&["s5cmd"], &["cp"], exact("", &[]), Shape::Copy { remote: is_bucket }),
    row(
        &["huggingface-cli", "hf"],
        &["download"],
        exact(
            "",
            &["local-dir", "cache-dir", "revision", "repo-type", "include", "exclude", "token"],
        ),
        Shape::Options(Options { named_dirs: &["--local-dir", "--cache-dir"], ..OPTIONS }),
    ),
    row(
        &["kaggle"],
        &["datasets", "download"],
        exact("pdf", &["path", "dataset", "file"]),
        Shape::Options(Options {
            dirs: &["-p", "--path"],
            default: Otherwise::AtEnd("-p"),
            ..OPTIONS
        }),
    ),
    row(
        &["dvc"],
        &["get"],
        exact("o", &["out", "rev"]),
        Shape::Options(Options { files: &["-o", "--out"], ..OPTIONS }),
    ),
    row(
        &["cookiecutter"],
        &[],
        exact("o", &["output-dir", "checkout", "directory"]),
        Shape::Options(Options {
            dirs: &["-o", "--output-dir"],
            default: Otherwise::AtEnd("-o"),
            ..OPTIONS
        }),
    ),
];

const PIP: Shape = Shape::Options(Options {
    dirs: &["-d", "--dest", "--destination-dir", "--destination-directory"],
    default: Otherwise::AtEnd("-d"),
    ..OPTIONS
});

/// The row of a command, and the arguments behind its subcommand.
pub(super) fn find(command: &Command) -> Option<(&'static Row, &[Word])> {
    let program = command.program()?;
    let program = if is_versioned(program, "pip") {
        "pip3"
    } else if is_versioned(program, "python") {
        "python3"
    } else {
        program
    };
    let candidates = ROWS.iter().filter(|row| row.programs.contains(&program));
    candidates.into_iter().find_map(|row| Some((row, row.arguments(command)?)))
}

/// `pip3.11`, `python3.12`.
fn is_versioned(program: &str, name: &str) -> bool {
    program.strip_prefix(name).is_some_and(|version| {
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

impl Row {
    /// The program and its subcommand, for messages.
    pub(super) fn title(&self) -> String {
        let program = self.programs.first().copied().unwrap_or_default();
        std::iter::once(&program).chain(self.verbs).copied().collect::<Vec<_>>().join(" ")
    }

    /// How many words are in front of the first place for options.
    pub(super) fn words_in_front(&self) -> usize {
        self.verbs.len()
    }

    /// The arguments behind the subcommand, if this is the subcommand.
    fn arguments<'c>(&self, command: &'c Command) -> Option<&'c [Word]> {
        let mut rest = match self.programs {
            ["git"] => {
                let git = git::split(command)?;
                let at = command
                    .arguments()
                    .iter()
                    .position(|word| std::ptr::eq(word, git.subcommand))?;
                command.arguments().get(at..)?
            }
            _ => command.arguments(),
        };
        for verb in self.verbs {
            // Options may be in front of each word: `gsutil -m cp`, `aws --profile x s3 cp`.
            loop {
                let (word, behind) = rest.split_first()?;
                rest = behind;
                let text = word.value.known()?;
                if text == *verb {
                    break;
                }
                if !text.starts_with('-') || verb.starts_with('-') {
                    return None;
                }
                let takes_value = matches!(
                    text,
                    "--profile"
                        | "--region"
                        | "--project"
                        | "-R"
                        | "--repo"
                        | "-n"
                        | "--context"
                        | "--namespace"
                        | "-p"
                        | "--endpoint-url"
                ) || self.global.long.contains(&text.trim_start_matches('-'));
                if takes_value && !text.contains('=') {
                    rest = rest.split_first()?.1;
                }
            }
        }
        Some(rest)
    }
}

/// `host:path` with no slash before the colon, or an address.
fn is_remote(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    match text.split_once(':') {
        Some((host, _)) => !host.is_empty() && !host.contains('/') && !text.starts_with(['.', '~']),
        None => false,
    }
}

fn is_container(text: &str) -> bool {
    is_remote(text) && !text.starts_with('/')
}

/// `pod:path`, or `namespace/pod:path`.
fn is_pod(text: &str) -> bool {
    text.contains(':') && !text.starts_with(['/', '.', '~'])
}

fn is_bucket(text: &str) -> bool {
    text.contains("://")
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
