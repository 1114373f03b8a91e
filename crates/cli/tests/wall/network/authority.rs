//! Certificates for servers on this machine, by an authority that only these tests trust.

use std::sync::{Arc, OnceLock};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

use super::ground::{GRANTED, OTHER};

pub(super) struct Authority {
    /// The certificate that clients have to trust.
    pub(super) pem: String,
    pub(super) server: Arc<ServerConfig>,
}

/// One for all tests. Its servers may bear any of the names, so that it is never the certificate
/// that keeps a client away.
pub(super) fn authority() -> &'static Authority {
    static ONE: OnceLock<Authority> = OnceLock::new();
    ONE.get_or_init(|| {
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.distinguished_name.push(DnType::CommonName, "tests");
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        own.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = own.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(own, key);
        let key = KeyPair::generate().unwrap();
        let mut server = CertificateParams::new([GRANTED, OTHER].map(String::from)).unwrap();
        server.distinguished_name.push(DnType::CommonName, "server");
        server.use_authority_key_identifier_extension = true;
        let certificate = server.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        Authority { pem, server: Arc::new(server) }
    })
}
