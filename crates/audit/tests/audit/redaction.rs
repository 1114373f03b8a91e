//! Secrets go, ordinary text stays.

use std::borrow::Cow;

use audit::{redact, redact_record};
use model::Action;
use proptest::prelude::*;

use crate::test_log::record;

/// Letters and digits as a random generator makes them.
const RANDOM: &str = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";

#[test]
fn secrets_are_replaced() {
    let r = RANDOM;
    let capitals = "IOSFODNN7EXAMPLE";
    for (text, expected) in [
        // Tokens that their shape gives away.
        (format!("echo sk-ant-api03-{r}"), "echo [redacted]"),
        (format!("echo sk-{r}"), "echo [redacted]"),
        (format!("echo sk-proj-{r}_{r}"), "echo [redacted]"),
        (format!("git push ghp_{r}"), "git push [redacted]"),
        (format!("x gho_{r} ghu_{r} ghs_{r}"), "x [redacted] [redacted] [redacted]"),
        (format!("'github_pat_{r}_{r}'"), "'[redacted]'"),
        (format!("(glpat-{r})"), "([redacted])"),
        ("xoxb-123456789012-abcdef xoxp-1234567890".into(), "[redacted] [redacted]"),
        (format!("AKIA{capitals},ASIA{capitals}"), "[redacted],[redacted]"),
        (format!("key is AIza{r}"), "key is [redacted]"),
        (format!("hf_{r} npm_{r} pypi-{r}"), "[redacted] [redacted] [redacted]"),
        (format!("prefix_ghp_{r}"), "prefix_[redacted]"),
        (format!("eyJ{r}.eyJ{r}.{r}-_"), "[redacted]"),
        (
            "cat <<E\n-----BEGIN RSA PRIVATE KEY-----\nabc+/=\n-----END RSA PRIVATE KEY-----\nE"
                .into(),
            "cat <<E\n[redacted]\nE",
        ),
        (
            r"'-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n'".into(),
            r"'[redacted]\n'",
        ),
        (format!("-----BEGIN EC PRIVATE KEY-----\n{r}\n{r}\n'x"), "[redacted]'x"),
        // Headers.
        (
            "curl -H 'Authorization: Bearer abc' x".into(),
            "curl -H 'Authorization: Bearer [redacted]' x",
        ),
        (
            "curl -H \"authorization: Basic dXNlcjpwYXNz\" x".into(),
            "curl -H \"authorization: Basic [redacted]\" x",
        ),
        ("Authorization: token abc".into(), "Authorization: token [redacted]"),
        ("Authorization:Bearer abc".into(), "Authorization:Bearer [redacted]"),
        ("-H 'X-Api-Key: abc123'".into(), "-H 'X-Api-Key: [redacted]'"),
        ("-H PRIVATE-TOKEN:abc12345".into(), "-H PRIVATE-TOKEN:[redacted]"),
        (format!("say Bearer {r}"), "say Bearer [redacted]"),
        // Assignments.
        ("API_TOKEN=abc make".into(), "API_TOKEN=[redacted] make"),
        ("export DB_PASSWORD='a b' && x".into(), "export DB_PASSWORD='[redacted]' && x"),
        ("PGPASSWORD=\"a \\\" b\" psql".into(), "PGPASSWORD=\"[redacted]\" psql"),
        ("sh -c 'SECRET=abc x'".into(), "sh -c 'SECRET=[redacted] x'"),
        ("sh -c \"MY_SECRET=abc\"".into(), "sh -c \"MY_SECRET=[redacted]\""),
        ("PASSWORD=a\"b c\"d x".into(), "PASSWORD=[redacted] x"),
        ("PASSWORD='$literal' x".into(), "PASSWORD='[redacted]' x"),
        ("PASSWORD=a\\ b x".into(), "PASSWORD=[redacted] x"),
        ("aws_secret_access_key = \"abc\"".into(), "aws_secret_access_key = \"[redacted]\""),
        (
            "//registry.npmjs.org/:_authToken=abc".into(),
            "//registry.npmjs.org/:_authToken=[redacted]",
        ),
        (
            "https://x.org/?a=1&access_token=abc&b=2".into(),
            "https://x.org/?a=1&access_token=[redacted]&b=2",
        ),
        (
            "apikey=a credential=b AUTH=c db.pwd=d".into(),
            "apikey=[redacted] credential=[redacted] AUTH=[redacted] db.pwd=[redacted]",
        ),
        ("private_key=abc".into(), "private_key=[redacted]"),
        ("password=é€ x".into(), "password=[redacted] x"),
        // Options.
        ("gh --token abc --verbose".into(), "gh --token [redacted] --verbose"),
        ("gh --token=abc".into(), "gh --token=[redacted]"),
        ("x --db-password \"a b\" y".into(), "x --db-password \"[redacted]\" y"),
        ("x --api-key \\\n  abc".into(), "x --api-key \\\n  [redacted]"),
        ("[\"--client-secret\", \"abc\"]".into(), "[\"--client-secret\", \"[redacted]\"]"),
        ("vault -password abc".into(), "vault -password [redacted]"),
        ("curl -u me:abc https://x.org".into(), "curl -u me:[redacted] https://x.org"),
        // JSON and YAML.
        ("-d '{\"password\": \"abc\"}'".into(), "-d '{\"password\": \"[redacted]\"}'"),
        ("-d \"{\\\"token\\\":\\\"abc\\\"}\"".into(), "-d \"{\\\"token\\\":\\\"[redacted]\\\"}\""),
        ("password: hunter2".into(), "password: [redacted]"),
        ("db:\n  password: correcthorse\n".into(), "db:\n  password: [redacted]\n"),
        ("apiKey: 'abc'".into(), "apiKey: '[redacted]'"),
        // URLs.
        ("git clone https://me:abc@x.org/r".into(), "git clone https://me:[redacted]@x.org/r"),
        ("redis://:abc@localhost:6379/0".into(), "redis://:[redacted]@localhost:6379/0"),
        ("postgres://u:a@b@h/d".into(), "postgres://u:[redacted]@h/d"),
        (format!("https://{r}@x.org/r"), "https://[redacted]@x.org/r"),
        // A name, then something that only a generator makes.
        (
            format!("aws configure set aws_secret_access_key {r}"),
            "aws configure set aws_secret_access_key [redacted]",
        ),
    ] {
        assert_eq!(redact(&text), expected, "{text}");
    }
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "",
        "git commit -m \"fix token parser\"",
        "cargo test token_",
        "cargo test --test auth -- password_reset_2",
        "cargo test auth token_refresh_flow_handles_401_responses",
        "git commit -m 'auth: handle expired sessions'",
        "git commit -m \"token: fix the parser for v2 of it\"",
        "git log --author=alice --since=2026-01-01",
        "grep -rn \"password\" src | head",
        "grep -n 'password=' config.ini",
        "rg 'token ==' src",
        "rg token src/migrations/20240101120000",
        "if token == expected { return }",
        "let token: Option<String> = None;",
        "fn check(password: &str, token: &Token) -> bool",
        "auth::Token::parse(secret::load())",
        "TOKEN=$GITHUB_TOKEN make",
        "curl -H \"Authorization: Bearer $TOKEN\" https://x.org",
        "PASSWORD=\"${DB_PASSWORD}\" make",
        "TOKEN=$(gh auth token) make",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "echo $TOKEN",
        "export GITHUB_TOKEN",
        "AUTH=true make",
        "max_tokens=4096",
        "--max-tokens 4096",
        "PWD=/tmp make",
        "SSH_AUTH_SOCK=/tmp/agent.1 ssh-add -l",
        "docker login --password-stdin registry.example.org",
        "gh auth login --with-token < file",
        "x --token-file /run/token --no-auth src",
        "x --token --verbose",
        "docker run -u 1000:1000 image",
        "git clone ssh://git@github.com/a/b",
        "git clone git@github.com:a/b.git",
        "https://x.org/a:b@c",
        "npm install @types/node@20.1.0",
        "kubectl get secret my-secret -o yaml",
        "pip install sk-learn-contrib-extensions-2",
        "npm_config_registry=https://x.org npm ci",
        "from hf_hub import hf_hub_download",
        "grep -- '-----BEGIN RSA PRIVATE KEY-----' -r .",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "git show 3f2a9c1d4b5e6f708192a3b4c5d6e7f801234567",
        "AKIA is the prefix of an id",
        "eyJ is how they begin",
        "\"token\": null",
        "2026-01-01T00:00:00Z",
        "the pass: 12 of 12",
        "bearer of bad news",
        "ünïcödé — tøken “password”",
    ] {
        assert!(matches!(redact(text), Cow::Borrowed(_)), "{text} -> {}", redact(text));
    }
}

#[test]
fn long_texts_are_cut_after_their_secrets_are_gone() {
    let mut record = record(1);
    // Without redaction first, the cut would leave the front half of the token.
    let token = format!("ghp_{RANDOM}");
    let command = format!("{}{token}{}", "é ".repeat(650), "ü".repeat(5000));
    record.actions = vec![Action::Run { command, field: None }];
    let record = redact_record(record);
    let [Action::Run { command, .. }] = &record.actions[..] else { panic!("{record:?}") };
    assert!(command.len() <= 2048);
    assert!(command.ends_with(" bytes cut]"), "{command}");
    assert!(command.contains("é [redacted]ü"));
    assert_eq!(redact_record(record.clone()), record);
}

#[test]
fn hostile_texts_do_not_hold_up_the_scanner() {
    // Repeated, each of these makes a careless scanner look at the same bytes over and over.
    for part in [
        "sk-",
        "ghp_",
        "AKIA",
        "eyJabcdefghij.",
        "-----BEGIN x PRIVATE KEY-----",
        "-----BEGIN ",
        "://",
        "://a:",
        "token=\"",
        "token='$(",
        "token: ",
        "--token \\\"",
        "a=\"b",
        "-a 'x ",
        " ",
        "\\",
        "password",
        "-----END ",
        "\"token\":",
    ] {
        let text = part.repeat((1 << 18) / part.len());
        assert!(redact(&text).len() <= 6 * text.len(), "{part}");
    }
}

/// Texts made of the pieces that mean something to the scanner.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "token",
        "password",
        "--secret",
        "auth",
        "=",
        ":",
        " ",
        "\"",
        "'",
        "\\",
        "\\\"",
        "://",
        "@",
        "/",
        "$",
        "(",
        "é",
        "\n",
        "abc",
        "a1b2c3d4",
        "Bearer",
        "-----BEGIN",
        "sk-ant-",
        " PRIVATE KEY-----",
        "-----END ",
        "eyJabcdefghi",
        ".",
        "&",
        "[redacted]",
        "curl ",
        "-u",
        "AKIA",
        "IOSFODNN7EXAMPLE",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_text_is_scanned_without_loss(text in prop_oneof![pieces(), any::<String>()]) {
        let redacted = redact(&text);
        // What is left is the text's own, in its order.
        let mut rest = &text[..];
        for kept in redacted.split("[redacted]") {
            let at = rest.find(kept);
            prop_assert!(at.is_some(), "{redacted}");
            rest = &rest[at.unwrap() + kept.len()..];
        }
    }
}
