//! Owns the TLS settings of a run: versions, ALPN, and what of a certificate is checked.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::LoadError;
use super::plan::{LoadPlan, Verify};

/// TLS library and provider, as written to results.
pub(super) const LIBRARY: &str = "rustls 0.23 (ring)";

/// What connections need to begin a handshake.
pub(super) struct Settings {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

impl Settings {
    /// Settings for TLS 1.2 and 1.3 with the ALPN of the protocol and without resumption: every connection
    /// pays for a full handshake.
    pub(super) fn new(plan: &LoadPlan) -> Result<Self, LoadError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let name = ServerName::try_from(plan.target.sni.clone()).map_err(|_| {
            LoadError::Tls(format!("`{}` is not a TLS server name; give one with --sni", plan.target.sni))
        })?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
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
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), name })
    }
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
