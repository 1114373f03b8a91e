//! Other names of protected files: a hard link that was created before the file was protected, and
//! spellings that a file system takes for the same name.

use fixtures::{TestEnv, users};

const EVIL: &str = "printf '[core]\\n\\tfsmonitor = ./evil\\n'";

/// Two runs, one after the other. The first leaves a name that nothing protects yet.
#[test]
fn a_protected_file_is_not_written_by_a_name_that_an_earlier_run_gave_it() {
    for who in users() {
        for (first, by_the_user, second) in [
            // A repository of the first run is one of the user's for the second.
            (
                "git init -q sub",
                "ln sub/.git/config innocent; cp sub/.git/config before",
                format!("{EVIL} >> innocent; rm -f innocent"),
            ),
            (
                "git init -q sub",
                "ln sub/.git/config innocent; cp sub/.git/config before",
                format!("{EVIL} > new; exec 3<> innocent && cat new >&3; rm -f innocent"),
            ),
            // What the user has looked at and put into its place.
            (
                "echo reviewed > draft; ln draft innocent",
                "cp draft before; mkdir -p sub/.git; mv draft .envrc",
                "echo evil > innocent; rm -f innocent".into(),
            ),
            (
                "echo reviewed > draft; ln draft innocent",
                "cp draft before; git init -q; mkdir -p .git/hooks; mv draft .git/hooks/pre-commit",
                "echo evil > innocent; truncate -s 0 innocent; chmod 777 innocent; rm -f innocent"
                    .into(),
            ),
        ] {
            let env = TestEnv::new(who);
            env.configure("[violation]\naction = \"deny\"\n");
            let ran = env.run(&[], first);
            assert_eq!(ran.code, Some(0), "{first}: {ran:?}");
            env.prepare(by_the_user);
            let protected = ["sub/.git/config", ".envrc", ".git/hooks/pre-commit"];
            let protected = protected.map(|name| env.project().join(name));
            let protected = protected.iter().find(|path| path.exists()).unwrap();
            let mode = protected.metadata().unwrap().permissions();
            let ran = env.run(&[], &second);
            assert_eq!(
                std::fs::read_to_string(protected).unwrap(),
                env.read("project/before"),
                "{second}: {ran:?}"
            );
            assert_eq!(protected.metadata().unwrap().permissions(), mode, "{second}");
            let denied = ran.violations();
            assert!(!denied.is_empty(), "{second}: {ran:?}");
            let all = denied
                .iter()
                .all(|it| it["rule"]["name"] == "protected" || it["rule"] == "protected");
            assert!(all, "{denied:?}");
            // Without intercepted calls, what was changed is found at the end.
            let config = protected.ends_with("config");
            if config {
                env.prepare("ln sub/.git/config innocent");
                let ran = env.run(&["--attribution", "inferred"], &second);
                let now = std::fs::read_to_string(protected).unwrap();
                assert!(!now.contains("fsmonitor"), "{second}: {ran:?}");
                assert_eq!(ran.events("tampering").len(), 1, "{second}: {ran:?}");
            }
        }
    }
}

/// The next run could write it by the other name.
#[test]
fn a_configuration_with_two_names_does_not_stay() {
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(&[], "git init -q sub; ln sub/.git/config innocent");
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
        assert!(!env.path("project/sub/.git/config").exists(), "{ran:?}");
    }
}

/// A package manager links the same file to many places, and a copy of a tree may share its files.
#[test]
fn other_files_with_several_names_are_written_as_ever() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare("git init -q -b main; echo a > a; ln a b; ln .git/config .git/config.old");
        let ran = env.run(&[], "echo b >> b; chmod 600 b; truncate -s 3 b; ln a c; rm a; cat b c");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\nba\nb"), "{ran:?}");
    }
}
