//! Owns the TLS settings of a run: versions, ciphers, ALPN, resumption, and what of a certificate is checked.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption as Store, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::LoadError;
use super::plan::{LoadPlan, Verify};
use super::tickets::Tickets;
use crate::results::Resumption;

/// TLS library and provider, as written to results.
pub(super) const LIBRARY: &str = "rustls 0.23 (ring)";

/// What connections need to begin a handshake.
pub(super) struct Settings {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

impl Settings {
    /// Settings with the ALPN of the protocol, for TLS 1.2 and 1.3, over QUIC for 1.3 alone (RFC 9001 §4.2).
    /// Without resumption every connection pays for a full handshake.
    pub(super) fn new(plan: &LoadPlan) -> Result<Self, LoadError> {
        let quic = plan.protocol.is_quic();
        let provider = Arc::new(provider(quic));
        let name = ServerName::try_from(plan.target.sni.clone()).map_err(|_| {
            LoadError::Tls(format!("`{}` is not a TLS server name; give one with --sni", plan.target.sni))
        })?;
        let versions: &[_] = if quic { &[&rustls::version::TLS13] } else { rustls::ALL_VERSIONS };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| LoadError::Tls(error.to_string()))?;
        let mut config = match &plan.verify {
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
                .with_no_client_auth(),
            Some(verify) => {
                let roots = match verify {
                    Verify::System => system_roots()?,
                    Verify::Roots(path) => roots(path)?,
                };
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| LoadError::Tls(error.to_string()))?;
                builder.with_webpki_verifier(verifier).with_no_client_auth()
            }
        };
        config.alpn_protocols =
            plan.protocol.alpn().map(|name| name.as_bytes().to_vec()).into_iter().collect();
        config.resumption = match plan.resumption {
            Resumption::Off => Store::disabled(),
            Resumption::Ticket | Resumption::ZeroRtt => Store::store(Arc::new(Tickets::default())),
        };
        config.enable_early_data = plan.resumption == Resumption::ZeroRtt;
        Ok(Self { config: Arc::new(config), name })
    }
}

/// The cryptography of ring. Over QUIC AES-128 is offered first, as browsers do: packets are sealed one by one with
/// it and their headers masked, and AES-256 takes 14 rounds where it takes 10. Servers that follow the client's
/// order then all do the same work; what was agreed on is in the results.
fn provider(quic: bool) -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    if quic {
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != TLS13_AES_128_GCM_SHA256.suite());
    }
    provider
}

fn system_roots() -> Result<RootCertStore, LoadError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        let text =
            "the system has no root certificates; install ca-certificates or name a file: --verify=ROOTS.pem";
        return Err(LoadError::Tls(text.into()));
    }
    Ok(store)
}

fn roots(path: &str) -> Result<RootCertStore, LoadError> {
    let bad = |error: &dyn std::fmt::Display| {
        LoadError::Tls(format!("cannot read certificates from {path}: {error}"))
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
        store.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
    }
    if store.is_empty() {
        return Err(bad(&"it has none"));
    }
    Ok(store)
}

/// Accepts any certificate: what is measured is the server, not its papers. Signatures of the
/// handshake are checked all the same, so that the client does a client's work.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quic_offers_aes_128_first_and_all_the_rest() {
        let (mut quic, mut tcp) = (provider(true).cipher_suites, provider(false).cipher_suites);
        assert_eq!(quic[0].suite(), TLS13_AES_128_GCM_SHA256.suite());
        let name = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite());
        quic.sort_by_key(name);
        tcp.sort_by_key(name);
        assert_eq!(quic, tcp);
    }
}
