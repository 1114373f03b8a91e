//! What connections get.

use proptest::prelude::*;

use super::*;

fn rules(entries: &[&str]) -> Vec<Sourced<DomainRule>> {
    let rule = |text: &&str| Sourced::built_in(DomainRule::parse(text).unwrap());
    entries.iter().map(rule).collect()
}

fn network(level: Level, allowed: &[&str], denied: &[&str], private: &[&str]) -> NetworkRules {
    NetworkRules {
        level: Sourced::built_in(level),
        allowed: rules(allowed),
        denied: rules(denied),
        private: rules(private),
        local_ports: vec![Sourced::built_in(5432)],
        allow_without_sni: Sourced::built_in(false),
        grant_file: "/p/ringwall.toml".into(),
    }
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

fn passes(reason: &Reason) -> bool {
    reason.verdict == Verdict::Allow
}

#[test]
fn only_what_is_listed_is_reached() {
    let network = network(
        Level::Readwrite,
        &["example.org", "*.example.net", "git.example.org:22", "203.0.113.7"],
        &["bad.example.net"],
        &[],
    );
    for (name, port, fine) in [
        ("example.org", 443, true),
        ("example.org", 80, true),
        ("example.org", 8080, false),
        ("www.example.org", 443, false),
        ("a.example.net", 443, true),
        ("a.b.example.net", 443, true),
        ("example.net", 443, false),
        ("evilexample.net", 443, false),
        ("bad.example.net", 443, false),
        ("git.example.org", 22, true),
        ("git.example.org", 443, false),
        ("203.0.113.7", 443, true),
        ("203.0.113.8", 443, false),
        ("localhost", 5432, true),
        ("127.0.0.1", 5432, true),
        ("::1", 5432, true),
        ("127.0.0.2", 5432, false),
        ("a.localhost", 5432, false),
        ("localhost", 5433, false),
    ] {
        assert_eq!(passes(&connect(&network, &host(name), port)), fine, "{name}:{port}");
    }
}

#[test]
fn an_empty_list_is_no_network() {
    let network = NetworkRules { local_ports: vec![], ..network(Level::Readonly, &[], &[], &[]) };
    for name in ["example.org", "localhost", "203.0.113.1", "::1"] {
        assert!(!passes(&connect(&network, &host(name), 443)), "{name}");
        assert!(!passes(&look_up(&network, &host(name))), "{name}");
    }
}

#[test]
fn the_network_level_reaches_names_and_nothing_unnamed() {
    let network = network(Level::Network, &[], &["*.bad.example", "half.example:25"], &[]);
    assert!(passes(&connect(&network, &host("example.org"), 9418)));
    assert!(!passes(&connect(&network, &host("x.bad.example"), 443)));
    assert!(!passes(&connect(&network, &host("half.example"), 25)));
    assert!(passes(&connect(&network, &host("half.example"), 443)));
    assert!(!passes(&connect(&network, &host("203.0.113.1"), 443)));
    assert!(!passes(&connect(&network, &host("localhost"), 443)));
    assert!(passes(&look_up(&network, &host("half.example"))));
    assert!(!passes(&look_up(&network, &host("x.bad.example"))));
}

#[test]
fn a_name_leads_to_public_addresses_unless_granted() {
    let network = network(
        Level::Network,
        &["10.0.0.9:8080"],
        &["203.0.113.66"],
        &["inner.example.org", "port.example.org:8443"],
    );
    let dials = |name: &str, port, to: &str| {
        passes(&dial(&network, &host(name), port, to.parse().unwrap()))
    };
    assert!(dials("example.org", 443, "203.0.113.1"));
    assert!(!dials("example.org", 443, "203.0.113.66"));
    assert!(!dials("example.org", 443, "127.0.0.1"));
    assert!(!dials("example.org", 5432, "127.0.0.1"));
    assert!(!dials("example.org", 443, "169.254.169.254"));
    assert!(!dials("example.org", 443, "::ffff:10.0.0.1"));
    assert!(dials("inner.example.org", 443, "10.0.0.1"));
    assert!(dials("inner.example.org", 9000, "10.0.0.1"));
    assert!(dials("port.example.org", 8443, "10.0.0.1"));
    assert!(!dials("port.example.org", 443, "10.0.0.1"));
    assert!(dials("localhost", 5432, "127.0.0.1"));
    assert!(dials("localhost", 5432, "::1"));
    assert!(!dials("localhost", 5432, "10.0.0.1"));
    assert!(dials("10.0.0.9", 8080, "10.0.0.9"));
    assert!(!dials("10.0.0.9", 443, "10.0.0.9"));
}

#[test]
fn tls_names_the_server_that_was_asked_for() {
    let mut network = network(Level::Readwrite, &["example.org", "203.0.113.7"], &[], &[]);
    let (name, address) = (host("example.org"), host("203.0.113.7"));
    let named = |text| ServerName::Named(host(text));
    let says = |network: &_, asked, said| passes(&server_name(network, asked, 443, &said));
    assert!(says(&network, &name, named("example.org")));
    assert!(!says(&network, &name, named("evil.example")));
    assert!(!says(&network, &name, ServerName::Absent));
    assert!(!says(&network, &name, ServerName::Encrypted));
    assert!(says(&network, &address, ServerName::Absent));
    assert!(says(&network, &address, named("example.org")));
    assert!(!says(&network, &address, named("evil.example")));
    assert!(!says(&network, &address, ServerName::Encrypted));
    assert!(!says(&network, &address, ServerName::Unreadable("x".into())));
    network.allow_without_sni.value = true;
    assert!(says(&network, &name, ServerName::Absent));
    assert!(says(&network, &name, ServerName::Encrypted));
    assert!(!says(&network, &name, named("evil.example")));
    assert!(!says(&network, &name, ServerName::Unreadable("x".into())));
}

#[test]
fn a_request_is_for_the_host_that_was_asked_for() {
    let network = network(Level::Readwrite, &["example.org", "203.0.113.7"], &[], &[]);
    let (name, address) = (host("example.org"), host("203.0.113.7"));
    let says =
        |asked, said: &str, port| passes(&request_host(&network, asked, 80, &host(said), port));
    assert!(says(&name, "example.org", None));
    assert!(says(&name, "example.org", Some(80)));
    assert!(!says(&name, "example.org", Some(8080)));
    assert!(!says(&name, "evil.example", None));
    assert!(!says(&name, "203.0.113.7", None));
    assert!(says(&address, "203.0.113.7", None));
    assert!(says(&address, "example.org", None));
    assert!(!says(&address, "evil.example", None));
}

#[test]
fn a_refusal_names_the_way_out() {
    let network = network(Level::Readwrite, &["example.org"], &[], &[]);
    let reason = connect(&network, &host("crates.example"), 443);
    let way = reason.instead.unwrap().to_string();
    assert!(way.contains("`ringwall grant domain crates.example`"), "{way}");
    assert!(way.contains("`network.allowed_domains = [\"crates.example\"]`"), "{way}");
    let reason = connect(&network, &host("example.org"), 8443);
    assert!(reason.text.contains("allows only port 80 and 443"), "{}", reason.text);
    assert!(
        reason.instead.unwrap().to_string().contains("`ringwall grant domain example.org:8443`")
    );
    let reason = connect(&network, &host("localhost"), 8443);
    assert!(reason.instead.unwrap().to_string().contains("`network.allow_local_ports = [8443]`"));
    let reason = look_up(&network, &host("crates.example"));
    assert!(reason.text.contains("looking up `crates.example`"), "{}", reason.text);
    assert!(reason.instead.unwrap().to_string().contains("`ringwall grant domain crates.example`"));
}

proptest! {
    /// Taking a rule away never allows more, and a denied name stays denied.
    #[test]
    fn fewer_grants_never_allow_more(
        name in "(a\\.|b\\.)?(example|evil)\\.(org|net)",
        port in prop::sample::select(vec![22, 80, 443]),
        allowed in prop::collection::vec("(\\*\\.)?(a\\.)?(example|evil)\\.(org|net)(:22)?", 0..4),
        denied in prop::collection::vec("(\\*\\.)?(a\\.)?(example|evil)\\.(org|net)(:22)?", 0..3),
    ) {
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let denied: Vec<&str> = denied.iter().map(String::as_str).collect();
        let host = host(&name);
        let whole = network(Level::Readwrite, &allowed, &denied, &[]);
        let fewer = network(Level::Readwrite, allowed.get(1..).unwrap_or(&[]), &denied, &[]);
        let freer = network(Level::Readwrite, &allowed, denied.get(1..).unwrap_or(&[]), &[]);
        if passes(&connect(&fewer, &host, port)) {
            prop_assert!(passes(&connect(&whole, &host, port)));
        }
        if passes(&connect(&whole, &host, port)) {
            prop_assert!(passes(&connect(&freer, &host, port)));
            prop_assert!(passes(&look_up(&whole, &host)));
            prop_assert!(!rules(&denied).iter().any(|rule| rule.value.covers(&host, port)));
        }
    }
}
