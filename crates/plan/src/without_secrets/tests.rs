use proptest::prelude::*;

use super::*;

fn shown(format: Format, text: &str) -> Option<String> {
    without_secrets(format, text).map(|shown| shown.text)
}

#[test]
fn a_secret_is_left_out_and_everything_else_stays() {
    let table = [
        (Format::Ini, "a=1\r\ntoken=X\r\nb=2", "a=1\r\n\r\nb=2"),
        (Format::Ini, "always-auth=true\n_auth=X\n", "always-auth=true\n\n"),
        (Format::Ini, "cafile=/etc/ca.pem\nauthor=me\n", "cafile=/etc/ca.pem\nauthor=me\n"),
        (Format::Ini, "; password = X\n", "\n"),
        (Format::Ini, "color = ghp_aaaaaaaaaaaaaaaaaaaaaaaa\n", "\n"),
        (Format::Ini, "password =\n  X\n\n  X\nb = 2\n", "\n\n\n\nb = 2\n"),
        (Format::Ini, "[auth]\nours.prefix = X\n[ui]\na = b\n", "[auth]\n\n[ui]\na = b\n"),
        (Format::Ini, "u = https://a:b/c@h.org/p\n", "u = https://h.org/p\n"),
        (Format::Ini, "u = https://h.org:8/@s/p\n", "u = https://h.org:8/@s/p\n"),
        (Format::Ini, "u = https://${U}:${P}@h.org\n", "u = https://${U}:${P}@h.org\n"),
        (Format::Ini, "u = https://h.org/?private_token=X&a=b\n", "\n"),
        (Format::Ini, "password X\n", "\n"),
        (Format::Ini, "proxy = a:X@h:1\n", "proxy = h:1\n"),
        (Format::Git, "[http]\n\textraheader = X\n\tproxy = h\n", "[http]\n\n\tproxy = h\n"),
        (Format::Git, "[user] token = X\n\tname = A\n", "[user]\n\tname = A\n"),
        (Format::Git, "[url \"https://u:X@h/\"]\n\ta = b\n", "[url \"https://h/\"]\n\ta = b\n"),
        (
            Format::Git,
            "[credential]\n\tusername = X\n\thelper = y\n",
            "[credential]\n\n\thelper = y\n",
        ),
        (Format::Toml, "a = { token = \"X\" }\nb = 1\n", "\nb = 1\n"),
        (Format::Toml, "a.token = [\n \"X\",\n \"X\",\n]\nb = 1\n", "\n\n\n\nb = 1\n"),
        (
            Format::Toml,
            "f = [\n \"-C\",\n \"link-arg=-s\",\n]\n",
            "f = [\n \"-C\",\n \"link-arg=-s\",\n]\n",
        ),
        (Format::Toml, "\"to\\u006ben\" = \"X\"\nb = 1\n", "\nb = 1\n"),
        (Format::Toml, "a.\"to\\u006ben\".b = \"X\"\nb = 1\n", "\nb = 1\n"),
        (Format::Toml, "a = { c = 1, \"to\\x6ben\"= \"X\" }\nb = 1\n", "\nb = 1\n"),
        (
            Format::Toml,
            "[\"\\u0061uth\"]\nb = \"X\"\n[c]\nd = 1\n",
            "[\"\\u0061uth\"]\n\n[c]\nd = 1\n",
        ),
        (Format::Toml, "f = \"a\\\"b\" # \"\\n\" =\n", "f = \"a\\\"b\" # \"\\n\" =\n"),
        (Format::Toml, "[http]\nproxy = \"u:X@h:1\"\n", "[http]\nproxy = \"h:1\"\n"),
        (Format::Xml, "<a><b>c</b><password>X</password></a>", "<a><b>c</b></a>"),
        (Format::Xml, "<a><!-- X --><u>https://u:X@h</u></a>", "<a><u>https://h</u></a>"),
        (Format::Xml, "<s><servers><server><id>X</id></server></servers></s>", "<s></s>"),
    ];
    for (format, text, expected) in table {
        assert_eq!(shown(format, text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_understood_gives_no_copy() {
    for (format, text) in [
        (Format::Toml, "a = \"\"\"\ntoken = \"\"\"\n"),
        (Format::Xml, "<a><b></a></b>"),
        (Format::Xml, "<a><![CDATA[X]]></a>"),
        (Format::Xml, "<!DOCTYPE a [<!ENTITY x \"X\">]><a/>"),
        (Format::Xml, "<a>"),
        (Format::Ini, "a=1\0"),
        (Format::Ini, "a=1\rtoken=X\n"),
    ] {
        assert_eq!(shown(format, text), None, "{text}");
    }
}

fn spelt(name: &str, spelling: u8) -> String {
    match spelling % 3 {
        0 => name.to_owned(),
        1 => name.to_uppercase(),
        _ => format!("//host/:_{name}"),
    }
}

proptest! {
    #[test]
    fn no_value_under_the_name_of_a_secret_is_shown(
        name in prop::sample::select(vec![
            "token", "password", "passwd", "secret", "apikey", "authToken", "credential", "auth", "key",
        ]),
        spelling in any::<u8>(),
        prefix in "[a-z]{0,6}[._-]",
        value in "[A-Z]{12,20}",
        sign in prop::sample::select(vec!["=", " = ", ": ", ":"]),
        format in prop::sample::select(vec![Format::Ini, Format::Git, Format::Toml]),
    ) {
        let name = spelt(name, spelling);
        let text = format!("a = 1\n{prefix}{name}{sign}{value}\nb = 2\n");
        let shown = without_secrets(format, &text);
        if let Some(shown) = shown {
            prop_assert!(!shown.text.contains(&value), "{text}");
            prop_assert!(!format!("{:?}", shown.removed).contains(&value), "{text}");
            prop_assert!(shown.text.starts_with("a = 1\n") && shown.text.ends_with("\nb = 2\n"));
        }
    }

    #[test]
    fn ordinary_settings_stay_byte_for_byte(
        lines in prop::collection::vec("(jobs|prefix|timeout|color|registry)[ ]?=[ ]?[a-z0-9/.]{0,12}", 0..8),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let text = lines.join(end);
        for format in [Format::Ini, Format::Git, Format::Toml] {
            prop_assert_eq!(shown(format, &text), Some(text.clone()));
        }
    }

    #[test]
    fn any_text_is_taken(text in "\\PC{0,80}(\n\\PC{0,40}){0,4}") {
        for format in [Format::Ini, Format::Git, Format::Toml, Format::Xml] {
            let _ = without_secrets(format, &text);
        }
    }
}
