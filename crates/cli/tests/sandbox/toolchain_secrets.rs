//! Toolchains keep credentials beside what a build needs: the run sees what it needs.

use fixtures::{TestEnv, users};

/// What must not be seen of any of them.
const CANARY: &str = "CANARY";

/// Files below home in which tools, or people, keep secrets.
const SECRETS: &[&str] = &[
    ".asdf/plugins/python/.git/config",
    ".bun/bunfig.toml",
    ".cabal/token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".cargo/new-tool/auth.json",
    ".config/go/secret",
    ".deno/auth.json",
    ".dotnet/corefx/cryptography/x509stores/my/A.pfx",
    ".dotnet/TelemetryStorageService/a",
    ".elan/secret",
    ".fnm/token",
    ".gem/credentials",
    ".ghcup/config.yaml",
    ".gradle/develocity/keys.properties",
    ".gradle/enterprise/keys.properties",
    ".gradle/init.d/repositories.gradle",
    ".gradle/init.gradle",
    ".gradle/init.gradle.kts",
    ".julia/config/startup.jl",
    ".julia/logs/repl_history.jl",
    ".julia/servers/pkg.example.org/auth.toml",
    ".local/share/pipx/venvs/tool/pipx_metadata.json",
    ".local/share/uv/credentials/credentials.toml",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mix/auth",
    ".npm/_logs/debug.log",
    ".nvm/.git/config",
    ".opam/plugins/opam-publish/user.token",
    ".pyenv/plugins/tool/.git/config",
    ".rvm/user/db",
    ".sbt/.credentials",
    ".sbt/1.0/credentials.sbt",
    ".sbt/1.0/plugins/credentials.sbt",
    ".sbt/credentials",
    ".sdkman/candidates/gradle/8/init.d/a.gradle",
    ".stack/config.yaml",
    ".stack/upload/credentials.json",
    ".swiftly/token",
    ".virtualenvs/app/bin/postactivate",
    ".virtualenvs/app/bin/preactivate",
    ".virtualenvs/postactivate",
    ".volta/hooks.json",
    ".yarn/token",
    "go/pkg/mod/cache/vcs/0/config",
    "go/src/private/.git/config",
];

/// Settings that a tool needs, one with a secret in it: what the run sees instead.
const SETTINGS: &[(&str, &str, &str)] = &[
    (
        ".npmrc",
        "registry=https://r.example.org/\n//r.example.org/:_authToken=CANARY\nfund=false\n",
        "registry=https://r.example.org/\n\nfund=false\n",
    ),
    (
        ".nvm/versions/node/v22/etc/npmrc",
        "_password = CANARY\nprefix=/x\n# _auth=CANARY\n",
        "\nprefix=/x\n\n",
    ),
    (
        ".npm-global/etc/npmrc",
        "_auth=\"CANARY\"\n//r.example.org/:_authToken=${NPM_TOKEN}\n",
        "\n//r.example.org/:_authToken=${NPM_TOKEN}\n",
    ),
    (
        ".config/pip/pip.conf",
        "[global]\nindex-url = https://user:CANARY@pip.example.org/simple\ntimeout = 9\n",
        "[global]\nindex-url = https://pip.example.org/simple\ntimeout = 9\n",
    ),
    (
        ".pyenv/versions/3.13/pip.conf",
        "[global]\nextra-index-url =\n    https://CANARY@a.example.org/simple\n    https://b.example.org\n",
        "[global]\nextra-index-url =\n    https://a.example.org/simple\n    https://b.example.org\n",
    ),
    (
        ".virtualenvs/app/pip.conf",
        "[global]\npassword: CANARY\n  CANARY\nretries: 3\n",
        "[global]\n\n\nretries: 3\n",
    ),
    (
        ".cargo/config.toml",
        "[registries.ours]\nindex = \"https://u:CANARY@git.example.org\"\ntoken = \"CANARY\"\n[build]\njobs = 2\n",
        "[registries.ours]\nindex = \"https://git.example.org\"\n\n[build]\njobs = 2\n",
    ),
    (
        ".config/go/env",
        "GOPROXY=https://u:CANARY@p.example.org\nGOFLAGS=-mod=mod\n",
        "GOPROXY=https://p.example.org\nGOFLAGS=-mod=mod\n",
    ),
    (
        ".gradle/gradle.properties",
        "org.gradle.jvmargs=-Xmx2g\nnexusPassword=CANARY\n",
        "org.gradle.jvmargs=-Xmx2g\n\n",
    ),
    (
        ".nuget/NuGet/NuGet.Config",
        "<configuration><config><add key=\"x\" value=\"1\" /></config><packageSourceCredentials><a>\
         <add key=\"ClearTextPassword\" value=\"CANARY\" /></a></packageSourceCredentials></configuration>\n",
        "<configuration><config><add key=\"x\" value=\"1\" /></config></configuration>\n",
    ),
    (
        ".cabal/config",
        "jobs: 2\npassword: CANARY\nrepository ours\n  url: https://u:CANARY@c.example.org/\n",
        "jobs: 2\n\nrepository ours\n  url: https://c.example.org/\n",
    ),
    (
        ".julia/registries/Ours/.git/config",
        "[remote \"origin\"]\n\turl = https://u:CANARY@g.example.org/a\n\tfetch = +refs/*:refs/*\n",
        "[remote \"origin\"]\n\turl = https://g.example.org/a\n\tfetch = +refs/*:refs/*\n",
    ),
];

/// What a build needs of the same directories.
const NEEDED: &[&str] = &[
    ".asdf/shims/node",
    ".cabal/bin/tool",
    ".cargo/bin/cargo",
    ".cargo/registry/cache/a.crate",
    ".dotnet/sdk/9/dotnet.dll",
    ".gradle/caches/modules/a.jar",
    ".julia/packages/A/src/A.jl",
    ".local/share/pipx/venvs/tool/bin/tool",
    ".local/share/uv/python/3.13/bin/python",
    ".m2/repository/a/a.jar",
    ".npm/_cacache/index",
    ".nuget/packages/a/a.nupkg",
    ".nvm/nvm.sh",
    ".nvm/versions/node/v22/bin/node",
    ".opam/default/bin/ocaml",
    ".pyenv/versions/3.13/bin/python",
    ".sbt/boot/a.jar",
    ".sdkman/candidates/java/21/bin/java",
    ".stack/programs/a/ghc",
    ".virtualenvs/app/bin/python",
    ".volta/tools/image/node/22/bin/node",
    "go/pkg/mod/a@v1/a.go",
];

fn toolchains(env: &TestEnv) {
    for path in SECRETS {
        env.write(&format!("home/{path}"), CANARY);
    }
    for (path, text, _) in SETTINGS {
        env.write(&format!("home/{path}"), text);
    }
    for path in NEEDED {
        env.write(&format!("home/{path}"), "NEEDED\n");
    }
    env.own();
}

/// Reads every file that can be reached below home.
const WALK: &str = "
import os
for place, dirs, files in os.walk(os.path.expanduser('~')):
    for name in files:
        try:
            print(name, open(os.path.join(place, name), errors='replace').read())
        except OSError as error:
            print(name, error.strerror)
";

#[test]
fn no_secret_beside_a_toolchain_is_seen_and_what_a_build_needs_is() {
    for who in users() {
        let env = TestEnv::new(who);
        toolchains(&env);
        for attribution in ["tripwire", "notify", "inferred"] {
            let options = ["--attribution", attribution, "--learn"];
            let ran = env.run(&options, &format!("/usr/bin/python3 -c \"{WALK}\""));
            assert_eq!(ran.code, Some(0), "{attribution}: {ran:?}");
            assert!(!ran.stdout.contains(CANARY), "{attribution}: {ran:?}");
            let named: Vec<_> = SECRETS.iter().map(|path| format!("cat ~/{path}")).collect();
            let ran = env.run(&options, &format!("{}; true", named.join("; ")));
            assert!(!ran.stdout.contains(CANARY), "{attribution}: {ran:?}");

            let needed: Vec<_> = NEEDED.iter().map(|path| format!("~/{path}")).collect();
            let ran =
                env.run(&["--attribution", attribution], &format!("cat {}", needed.join(" ")));
            assert_eq!(ran.code, Some(0), "{attribution}: {ran:?}");
            assert_eq!(ran.stdout, "NEEDED\n".repeat(NEEDED.len()), "{attribution}");
        }
    }
}

#[test]
fn settings_that_a_tool_needs_come_without_their_secrets_and_that_is_said() {
    for who in users() {
        let env = TestEnv::new(who);
        toolchains(&env);
        for (path, _, expected) in SETTINGS {
            let ran = env.run(&[], &format!("cat ~/{path}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), *expected), "{path}: {ran:?}");
            let file = env.home().join(path).display().to_string();
            let said = ran.stderr.lines().filter(|line| line.contains(&file)).count();
            assert_eq!(said, 1, "{path}: {ran:?}");
            assert!(!ran.stderr.contains(CANARY) && !ran.stdout.contains(CANARY), "{ran:?}");
        }
        let events = env.run(&[], "true");
        assert!(!format!("{events:?}").contains(CANARY), "{events:?}");
    }
}

/// The tool may write beside what it needs: that is private, and gone with the run.
#[test]
fn a_toolchain_can_be_written_and_nothing_of_that_is_kept() {
    for who in users() {
        let env = TestEnv::new(who);
        toolchains(&env);
        let script = "set -e; cd ~; echo x > .cargo/.package-cache; echo x > .cargo/bin/new
            echo x > .cargo/registry/new; mkdir .cargo/private; echo x > .npm/_update-notifier
            echo x > go/pkg/mod/new; echo x > .nvm/new; cat .cargo/bin/new";
        let ran = env.run(&[], script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "x\n"), "{ran:?}");
        for path in [".cargo/.package-cache", ".cargo/bin/new", ".cargo/private", ".nvm/new"] {
            assert!(!env.home().join(path).exists(), "{path}");
        }
    }
}

#[test]
fn reading_well_known_credentials_stops_the_run() {
    for who in users() {
        let env = TestEnv::new(who);
        toolchains(&env);
        for path in [".cargo/credentials.toml", ".gem/credentials", ".sbt/.credentials"] {
            let ran = env.run(&[], &format!("cat ~/{path}; echo next"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{path}: {ran:?}");
        }
    }
}
