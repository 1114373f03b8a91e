//! TLS with a real server: which server name passes on which route.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use fixtures::{eventually, serve};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig, ServerConnection,
    SignatureScheme, Stream,
};

use crate::support::{Setup, TestProxy, client_hello, client_hello_with, read_all};

/// A server that answers any TLS client with one line, whatever name it was called by.
fn tls_server(max_early_retry: bool) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["example.org".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut provider = rustls::crypto::ring::default_provider();
    if max_early_retry {
        // Only a group for which clients send no share: the server asks for a second hello.
        provider.kx_groups = vec![rustls::crypto::ring::kx_group::SECP384R1];
    }
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    serve(move |mut stream| {
        let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = Stream::new(&mut connection, &mut stream);
        let mut word = [0; 5];
        if tls.read_exact(&mut word).is_ok() {
            let _ = tls.write_all(b"fine:");
            let _ = tls.write_all(&word);
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
    })
}

/// Takes any certificate: the proxy is under test, not the chain.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Whether a word makes it to the server and back. No name: the extension is left out.
fn speaks(mut stream: TcpStream, name: Option<&str>) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.enable_sni = name.is_some();
    let name = ServerName::try_from(name.unwrap_or("example.org").to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tls = Stream::new(&mut connection, &mut stream);
    let mut answer = Vec::new();
    if tls.write_all(b"hello").is_err() {
        return false;
    }
    let _ = tls.read_to_end(&mut answer);
    answer == b"fine:hello"
}

fn world(port: u16, allow_without_sni: bool) -> TestProxy {
    let entries =
        ["example.org", "other.example.org", "127.0.0.1"].map(|name| format!("{name}:{port}"));
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let setup = Setup::granting(&entries).named("example.org").named("other.example.org");
    Setup { allow_without_sni, ..setup }.start()
}

#[test]
fn the_server_name_is_the_one_that_was_asked_for() {
    let port = tls_server(false);
    let world = world(port, false);
    for (asked, said, passes) in [
        ("example.org", Some("example.org"), true),
        ("EXAMPLE.org.", Some("Example.ORG"), true),
        ("example.org", Some("evil.example"), false),
        // Granted, but not what was asked for.
        ("example.org", Some("other.example.org"), false),
        ("example.org", Some("a.example.org"), false),
        ("example.org", None, false),
        ("127.0.0.1", None, true),
        ("127.1", None, true),
        ("127.0.0.1", Some("example.org"), true),
        ("127.0.0.1", Some("evil.example"), false),
    ] {
        let (stream, code) = world.connect(&format!("{asked}:{port}"));
        assert_eq!(code, 200, "{asked}");
        assert_eq!(speaks(stream, said), passes, "connect {asked} {said:?}");
        let (stream, code) = world.socks(asked.as_bytes(), port);
        assert_eq!(code, 0, "{asked}");
        assert_eq!(speaks(stream, said), passes, "socks {asked} {said:?}");
    }
    let rules = world.witness.rules();
    assert_eq!(rules.len(), 10, "{rules:?}");
    assert_eq!(rules.iter().filter(|rule| *rule == "server-name").count(), 6, "{rules:?}");
    assert_eq!(rules.iter().filter(|rule| *rule == "network.allow_without_sni").count(), 2);
    // An address that is not granted is refused before anything is said in it.
    let (_, code) = world.connect(&format!("127.0.0.2:{port}"));
    assert_eq!(code, 403);
}

#[test]
fn a_name_may_be_left_out_where_that_is_allowed() {
    let port = tls_server(false);
    let world = world(port, true);
    for (said, passes) in [(None, true), (Some("example.org"), true), (Some("evil.example"), false)]
    {
        let (stream, code) = world.connect(&format!("example.org:{port}"));
        assert_eq!(code, 200);
        assert_eq!(speaks(stream, said), passes, "{said:?}");
    }
}

#[test]
fn a_second_hello_passes_if_it_names_the_same_server() {
    let port = tls_server(true);
    let world = world(port, false);
    let (stream, _) = world.connect(&format!("example.org:{port}"));
    assert!(speaks(stream, Some("example.org")));
    assert_eq!(world.witness.rules().len(), 0);
}

#[test]
fn nothing_of_a_refused_hello_reaches_the_server() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let port = serve(move |mut stream| {
        let bytes = read_all(&mut stream);
        log.lock().unwrap().extend(bytes);
    });
    let world = world(port, false);
    let (stream, _) = world.connect(&format!("example.org:{port}"));
    assert!(!speaks(stream, Some("evil.example")));
    // The true name is encrypted, whatever stands outside.
    let (mut stream, _) = world.connect(&format!("example.org:{port}"));
    stream.write_all(&client_hello_with("example.org", &[0xfe, 0x0d, 0, 2, 0, 0])).unwrap();
    assert_eq!(read_all(&mut stream), b"");
    // Broken ones neither: a record that is no hello, and one that promises the world.
    for bytes in [&b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"[..], b"\x16\x03\x01\xff\xff\x01"] {
        let (mut stream, _) = world.connect(&format!("example.org:{port}"));
        stream.write_all(bytes).unwrap();
        assert_eq!(read_all(&mut stream), b"");
    }
    // SSL 2 has no room for a name.
    let (mut stream, _) = world.connect(&format!("example.org:{port}"));
    stream.write_all(b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10").unwrap();
    assert_eq!(read_all(&mut stream), b"");
    assert_eq!(world.witness.rules().len(), 5);
    assert_eq!(*seen.lock().unwrap(), b"");
}

#[test]
fn a_second_hello_for_another_server_never_arrives() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let port = serve(move |mut stream| {
        let bytes = read_all(&mut stream);
        log.lock().unwrap().extend(bytes);
    });
    let world = world(port, false);
    let (mut stream, _) = world.connect(&format!("example.org:{port}"));
    let (first, change) = (client_hello("example.org"), [0x14, 3, 3, 0, 1, 1]);
    stream.write_all(&[&first[..], &change, &client_hello("evil.example")].concat()).unwrap();
    assert_eq!(read_all(&mut stream), b"");
    assert_eq!(world.witness.rules(), ["server-name"]);
    eventually(|| (*seen.lock().unwrap() == [&first[..], &change].concat()).then_some(()));
}
