use std::path::Path;

use crate::{Analysis, Dir, Grammar, Input, Surroundings, Value, analyse, parse_options};

fn read(text: &str) -> Analysis {
    let (dir, home) = (Path::new("/w"), Path::new("/home/u"));
    analyse(text, &Surroundings { dir, home, top: Some(dir) })
}

/// Each command as its words, `?` where a word is not known, and its directory.
fn shown(text: &str) -> Vec<String> {
    let analysis = read(text);
    let commands = analysis.commands.iter().map(|command| {
        let words: Vec<_> =
            command.words.iter().map(|word| word.value.known().unwrap_or("?").to_owned()).collect();
        let dir = match &command.dir {
            Dir::Known(dir) => dir.display().to_string(),
            Dir::Unknown(_) => "?".into(),
        };
        format!("{} @{dir}", words.join(" "))
    });
    commands.collect()
}

#[test]
fn every_command_is_seen_wherever_it_stands() {
    for (text, expected) in [
        ("a && b || c; d & e | f", "a b c d e f"),
        ("(a; { b; })", "a b"),
        ("echo $(a) `b` <(c) \"$(d)\"", "a b c d echo"),
        ("if a; then b; elif c; then d; else e; fi", "a c b d e"),
        ("while a; do b; done; until c; do d; done", "a b c d"),
        ("for x in 1; do a; done; case y in z) b;; esac", "a b"),
        ("f() { a; }; f", "a f"),
        ("time a; ! b; coproc c", "a b c"),
        ("x=$(a) b", "a b"),
        ("cat <<E\n$(a)`b`\nE", "a b cat"),
        ("cat <<'E'; b\n$(a)\nE", "cat b"),
        ("[[ $(a) = b ]] && c", "a c"),
        ("echo $((1 + $(a)))", "a echo"),
        ("echo ${x:-$(a)}", "a echo"),
        ("bash -c 'a; b'", "bash a b"),
        ("sh -ec 'a'", "sh a"),
        ("eval 'a; b' ; eval a b", "a b eval a eval"),
        ("trap 'a' EXIT", "a trap"),
        ("sudo -u x env A=1 timeout 5 nice -n 3 a", "a"),
        ("find . -exec a {} \\; -execdir b \\;", "find a b"),
        ("xargs -n 1 a", "a"),
        ("bash <<'E'\na\nE", "bash a"),
        ("su root -c 'a'", "su a"),
        ("flock f -c 'a; b'", "flock a b"),
        ("flock f ionice -c 2 a", "a"),
        ("command -v a", "command"),
    ] {
        let programs: Vec<_> =
            read(text).commands.iter().map(|c| c.program().unwrap_or("?").to_owned()).collect();
        assert_eq!(programs.join(" "), expected, "{text}");
        assert_eq!(read(text).unknown, [], "{text}");
    }
}

#[test]
fn the_directory_follows_the_shell() {
    for (text, expected) in [
        ("cd a; b", "b @/w/a"),
        ("cd a && cd .. && b", "b @/w"),
        ("cd -P a/.. && b", "b @/w/a/.."),
        ("(cd a); b", "b @/w"),
        ("cd a | x; b", "b @/w"),
        ("cd a & b", "b @/w"),
        ("cd; b", "b @/home/u"),
        ("cd ~/x; b", "b @/home/u/x"),
        ("cd \"~/x\"; b", "b @/w/~/x"),
        ("cd $HOME/x; b", "b @/home/u/x"),
        ("D=/x; cd $D; b", "b @/x"),
        ("D=/x; cd \"${D}/y\"; b", "b @/x/y"),
        ("cd $X; b", "b @?"),
        ("cd $X; cd /y; b", "b @/y"),
        ("cd -; b", "b @?"),
        ("if x; then cd a; fi; b", "b @?"),
        ("x || cd a; b", "b @?"),
        ("x || exit 1; b", "b @/w"),
        ("env -C /x b", "b @/x"),
        ("bash -c 'cd a; c'; b", "b @/w"),
        ("eval 'cd a'; b", "b @/w/a"),
        ("builtin cd a; b", "b @/w/a"),
        ("CDPATH=/x cd a; b", "b @?"),
        ("f() { cd a; }; f; b", "b @?"),
        ("for d in x y; do cd /$d; done; b", "b @/y"),
        ("while x; do cd ..; done; b", "b @?"),
        ("pushd a; popd; b", "b @?"),
        ("cd \"$(git rev-parse --show-toplevel)\"; b", "b @/w"),
        ("cd x; cd $(git rev-parse --show-toplevel); b", "b @/w"),
        ("cd $(git rev-parse --git-common-dir); b", "b @?"),
        ("T=$(mktemp -d); cd $T; b", "b @/tmp/tmp.XXXXXXXXXX"),
        ("cd $(pwd); b", "b @/w"),
    ] {
        assert_eq!(shown(text).last().unwrap(), expected, "{text}");
    }
}

#[test]
fn words_are_what_the_shell_makes_of_them() {
    for (text, expected) in [
        ("g\"\"it c\\lone 'a b'", "git clone a b @/w"),
        ("$'\\x67it' a\\ b", "git a b @/w"),
        ("a\\\nb c", "ab c @/w"),
        ("x=1; a $x ${x} \"$x\"", "a 1 1 1 @/w"),
        ("x='1 2'; a $x \"$x\"", "a ? 1 2 @/w"),
        ("a *.c {b,c} $y", "a ? ? ? @/w"),
        ("a '*.c' \"{b,c}\" \\$y", "a *.c {b,c} $y @/w"),
    ] {
        assert_eq!(shown(text).last().unwrap(), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_known_is_said() {
    for text in [
        "eval \"$x\"",
        "bash -c \"$x\"",
        "echo `a \\`b\\``",
        "cat <<A; cat <<B\n1\nA\n$(cmd)\nB",
        "a\u{a0}b",
        "echo \u{202e}x",
        "if x; then",
        &"(".repeat(100),
        &"a".repeat(70_000),
    ] {
        assert!(!read(text).unknown.is_empty(), "{}", &text[..text.len().min(60)]);
    }
}

#[test]
fn a_command_spans_its_own_words_and_nothing_else() {
    for (text, expected) in [
        ("cmd1 || cmd2", vec!["cmd1", "cmd2"]),
        ("cmd1 ; cmd2", vec!["cmd1", "cmd2"]),
        ("", vec![]),
        ("a | b", vec!["a", "b"]),
        ("a\nb", vec!["a", "b"]),
        ("echo 'x && y'", vec!["echo 'x && y'"]),
        ("echo \"a; b\"", vec!["echo \"a; b\""]),
        ("echo a\\;b", vec!["echo a\\;b"]),
        ("{ a; b; }", vec!["a", "b"]),
        ("echo $(git clone u)", vec!["git clone u", "echo $(git clone u)"]),
        ("cat <<'EOF'\ngit clone u\nEOF", vec!["cat"]),
        ("git  clone   url", vec!["git  clone   url"]),
        ("git clone k;;", vec!["git clone k"]),
        ("bash -c 'git clone k'", vec!["bash -c 'git clone k'", "git clone k"]),
        ("eval \"git clone k\"", vec!["git clone k", "eval \"git clone k\""]),
    ] {
        let spans: Vec<_> =
            read(text).commands.iter().map(|command| &text[command.span.clone()]).collect();
        assert_eq!(spans, expected, "{text}");
    }
}

#[test]
fn pipes_and_texts_are_known_as_input() {
    let analysis = read("a | b | c; d <<'E'\nx\nE\ne <<< y");
    let inputs: Vec<_> = analysis.commands.iter().map(|command| command.input.clone()).collect();
    assert_eq!(
        inputs,
        [
            Input::Inherited,
            Input::Pipe(vec![0]),
            Input::Pipe(vec![0, 1]),
            Input::Text("x\n".into()),
            Input::Text("y".into()),
        ]
    );
}

#[test]
fn a_wildcard_keeps_its_directory_and_climbing_behind_it_is_unknown() {
    let value = |text: &str| read(&format!("a {text}")).commands[0].words[1].value.clone();
    let pattern = |prefix: &str| Value::Pattern { prefix: prefix.into(), tilde: false };
    assert_eq!(value("src/*.c"), pattern("src/"));
    assert_eq!(value("src/{a,b}"), pattern("src/"));
    for text in ["*/../../x", "{../a,b}", "{/etc/a,b}", "$f/*/..", "a*/\"..\"/b"] {
        assert!(matches!(value(text), Value::Unknown { .. }), "{text}: {:?}", value(text));
    }
}

#[test]
fn options_are_read_in_every_spelling() {
    let grammar = Grammar {
        short: "oC",
        long: &["output", "output-dir", "directory"],
        flags: &["verbose"],
        abbreviates: true,
        stops_at_operand: false,
    };
    for (text, expected) in [
        ("-o f", "-o=f"),
        ("-of", "-o=f"),
        ("-vof", "-v -o=f"),
        ("--output f", "--output=f"),
        ("--output=f", "--output=f"),
        ("--dir=f", "--directory=f"),
        ("--outp f", "--outp f"),
        ("--verb f", "--verb f"),
        ("a -o f b", "-o=f a b"),
        ("-- -o f", "-o f"),
        ("-", "-"),
    ] {
        let command = format!("x {text}");
        let analysis = read(&command);
        let parsed = parse_options(analysis.commands[0].arguments(), &grammar);
        let options = parsed.options.iter().map(|option| match &option.value {
            Some(value) => format!("{}={}", option.name, value.known().unwrap()),
            None => option.name.clone(),
        });
        let operands = parsed.operands.iter().map(|word| word.value.known().unwrap().to_owned());
        assert_eq!(options.chain(operands).collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}
