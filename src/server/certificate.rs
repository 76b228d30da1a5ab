//! Owns the making of a run's certificate.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::civil::Date;
use jiff::{Span as Days, ToSpan};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};

use super::{Certificate, ServerError};
use crate::clock;

/// Names the certificate is valid for (RFC 6125 section 6.4: only subjectAltName counts).
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Days the certificate is valid for, counted from yesterday.
const VALID_DAYS: i64 = 30;

impl Certificate {
    /// Makes one in `dir`: `cert.pem` and `key.pem`, replacing what stood there. It is valid from
    /// yesterday, so that a server with a clock in another time zone accepts it, for 30 days.
    ///
    /// # Errors
    /// Names the file that could not be written.
    pub fn generate(dir: &Path) -> Result<Self, ServerError> {
        let (cert, key) = self_signed()
            .map_err(|error| ServerError::failed(format!("no certificate could be made: {error}")))?;
        let made = Self { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
        write(&made.cert, &cert, 0o644)?;
        write(&made.key, &key, 0o600)?;
        Ok(made)
    }
}

/// Certificate and key as PEM.
fn self_signed() -> Result<(String, String), Box<dyn std::error::Error>> {
    let today: Date = clock::wall_rfc3339()[..10].parse()?;
    let in_days = |days: Days| -> Result<_, jiff::Error> {
        let date = today.checked_add(days)?;
        // A civil date's month and day are always positive.
        Ok(rcgen::date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8))
    };
    let mut params = CertificateParams::new(NAMES.map(String::from))?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAMES[0]);
    params.not_before = in_days((-1).days())?;
    params.not_after = in_days((VALID_DAYS - 1).days())?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// Writes a new file. What stood there is removed first: a mode given at opening says nothing about
/// a file that exists.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), ServerError> {
    let _ = fs::remove_file(path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| ServerError::failed(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

    use super::*;

    #[test]
    fn clients_that_trust_it_accept_it_for_each_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let made = Certificate::generate(dir.path()).unwrap();
        let cert = CertificateDer::from_pem_file(&made.cert).unwrap();
        let key = PrivateKeyDer::from_pem_file(&made.key).unwrap();
        assert!(matches!(key, PrivateKeyDer::Pkcs8(_)));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)
            .unwrap();
        for name in NAMES {
            let name = ServerName::try_from(name).unwrap();
            let client = rustls::ClientConnection::new(Arc::new(client.clone()), name).unwrap();
            handshake(client, rustls::ServerConnection::new(Arc::new(server.clone())).unwrap());
        }
    }

    fn handshake(mut client: rustls::ClientConnection, mut server: rustls::ServerConnection) {
        // Two round trips are more than any handshake without a retry takes.
        for _ in 0..4 {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            let mut bytes = wire.as_slice();
            while !bytes.is_empty() {
                server.read_tls(&mut bytes).unwrap();
                server.process_new_packets().unwrap();
            }
            let mut wire = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            let mut bytes = wire.as_slice();
            while !bytes.is_empty() {
                client.read_tls(&mut bytes).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
    }

    #[test]
    fn a_key_is_readable_by_its_owner_alone_even_when_a_file_was_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("key.pem"), "old").unwrap();
        let made = Certificate::generate(dir.path()).unwrap();
        assert_eq!(fs::metadata(&made.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&made.key).unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let error = Certificate::generate(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.reason.contains("/nowhere/at/all/cert.pem"), "{error}");
    }
}
