//! Which variables of the caller a run gets, and what is said about the others.

use fixtures::{TestEnv, users};

const TOKEN: &str = "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn harmless_variables_pass_and_secrets_never_do() {
    for who in users() {
        let env = TestEnv::new(who);
        let given = [
            ("NODE_ENV", "test"),
            ("CFLAGS", "-O2"),
            ("RUST_LOG", "debug"),
            ("VITE_TOKEN", "seen"),
            ("DEBUG", TOKEN),
            ("API_KEY", "seen"),
            ("NODE_OPTIONS", "--require=/seen.js"),
            ("LD_PRELOAD_X", "seen"),
        ];
        let ran = env.run_with(&given, &[], "env");
        let has = |name: &str| ran.stdout.lines().any(|line| line.starts_with(&format!("{name}=")));
        for name in ["NODE_ENV", "CFLAGS", "RUST_LOG"] {
            assert!(has(name), "{name}: {ran:?}");
        }
        for name in ["VITE_TOKEN", "DEBUG", "API_KEY", "NODE_OPTIONS", "LD_PRELOAD_X"] {
            assert!(!has(name), "{name}: {ran:?}");
        }
        assert!(!ran.stdout.contains("seen") && !ran.stdout.contains(TOKEN), "{ran:?}");
        // By hand, everything passes.
        let options = ["-e", "API_KEY", "--env", "DEBUG", "-e", "MADE_TOKEN=own=x", "-e", "GONE"];
        let ran = env.run_with(&given, &options, "env");
        for line in ["API_KEY=seen", &format!("DEBUG={TOKEN}"), "MADE_TOKEN=own=x"] {
            assert!(ran.stdout.lines().any(|shown| shown == line), "{line}: {ran:?}");
        }
        assert!(!ran.stdout.contains("GONE="), "{ran:?}");
    }
}

#[test]
fn certificates_come_with_the_variable_and_nothing_else_does() {
    let certificate = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nQQ==\n-----END PRIVATE KEY-----\n";
    for who in users() {
        let env = TestEnv::new(who);
        let script = "cat \"$NODE_EXTRA_CA_CERTS\"";
        let good = env.write("outside/ca.pem", certificate).display().to_string();
        let ran = env.run_with(&[("NODE_EXTRA_CA_CERTS", &good)], &[], script);
        assert_eq!((ran.code, &*ran.stdout), (Some(0), certificate), "{ran:?}");
        let ran = env.run_with(&[("NODE_EXTRA_CA_CERTS", &good)], &[], &format!("echo x > {good}"));
        assert_eq!(ran.code, Some(77), "{ran:?}");
        let both = format!("{certificate}{key}");
        for text in [key, &both, "SECRET\n"] {
            let bad = env.write("outside/bad.pem", text).display().to_string();
            let ran = env.run_with(&[("NODE_EXTRA_CA_CERTS", &bad)], &[], script);
            assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{text}: {ran:?}");
            let ran = env.run_with(&[("NODE_EXTRA_CA_CERTS", &bad)], &[], &format!("cat {bad}"));
            assert_eq!((ran.code, &*ran.stdout), (Some(77), ""), "{text}: {ran:?}");
        }
    }
}

#[test]
fn a_failure_names_what_was_left_out_and_a_success_does_not() {
    for who in users() {
        let env = TestEnv::new(who);
        let given = [("DATABASE_NAME", "postgres://example.org/x"), ("SSH_TTY", "/dev/pts/1")];
        let script = "test -n \"$DATABASE_NAME\"";
        let ran = env.run_with(&given, &[], script);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.stderr.contains("`DATABASE_NAME`; `ringwall grant env DATABASE_NAME`"),
            "{ran:?}"
        );
        assert!(!ran.stderr.contains("SSH_TTY"), "{ran:?}");
        let ran = env.run_with(&given, &[], "true");
        assert_eq!(ran.stderr, "", "{ran:?}");
        let granted = env.ringwall(&["grant", "env", "DATABASE_NAME"]);
        assert!(granted.status.success(), "{granted:?}");
        assert_eq!(env.run_with(&given, &[], script).code, Some(0));
    }
}

/// A failure that has to do with something hidden says which, by which program, and what shows it.
#[test]
fn a_failure_names_what_was_hidden() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("outside/lib/x.mk", "x\n");
        let dir = env.path("outside/lib").display().to_string();
        let ran = env.run(&[], &format!("test -e {dir}/x.mk"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        // The look ends at the first directory that is hidden.
        let dir = env.path("outside").display().to_string();
        let told = format!("`bash` looked for {dir}, which the run does not see");
        assert!(ran.stderr.contains(&told), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`ringwall grant read {dir}`")), "{ran:?}");
        // What programs look for by habit is named if this one was called with it.
        let ran = env.run(&[], "cat /var/log/dpkg.log");
        assert!(ran.stderr.contains("`ringwall grant read /var/log`"), "{ran:?}");
        let ran = env.run(&["--learn"], &format!("test -e {dir}/gone; test -d {dir}; true"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}
