//! How a client proves who it is, and whom it trusts: what `perf/systems/credentials.py` reads, by its rules.
//!
//! A configuration holds names of secrets alone. A password is in an environment variable or in a file
//! that nobody else may use; it is never part of a message, and a `Secret` that is printed says nothing.
//! What is wrong is said by the sentences of `perf/systems/credentials.py`. Certificates are PEM; a server must
//! show one for the very address at which it is reached.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustls::crypto::aws_lc_rs;
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::spec::{Access, Tls};

const HERE: &str = "this host";
/// The authorities of a whole system are a quarter of this.
const MOST_BYTES: u64 = 1024 * 1024;
const OTHERS: u32 = 0o077;
const MODE: u32 = 0o7777;

/// A password; printing it shows nothing of it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Gives the password itself, for the driver that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// An account of the database and its password.
#[derive(Clone, Debug)]
pub struct Login {
    pub username: String,
    pub password: Secret,
}

/// Reads the account that clients log in with; none if the spec names none.
///
/// # Errors
/// Says which variable or file is wrong and what to do; never what is in it.
pub fn read_login(access: &Access) -> Result<Option<Login>, String> {
    let Some(username) = access.username.clone() else {
        return Ok(None);
    };
    let password = match (&access.password_env, &access.password_file) {
        (Some(name), _) => from_environment(name, &username)?,
        (None, Some(path)) => from_file(path, &username)?,
        (None, None) => {
            let why =
                "access.username has no password; set access.password_env or access.password_file";
            return Err(at(HERE, why));
        }
    };
    let password = Secret(password);
    Ok(Some(Login { username, password }))
}

/// What the files of TLS hold, each opened once: what was looked at is what is used.
pub struct TlsFiles {
    pub authorities: Vec<u8>,
    /// Certificate and key of the client itself.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
}

/// Makes what a client needs to speak TLS: whom it trusts and, if the spec names one, its own certificate.
///
/// # Errors
/// Says which file is wrong and what to do.
pub fn tls_config(tls: &Tls) -> Result<ClientConfig, String> {
    read_tls(tls).map(|(config, _)| config)
}

/// Makes the same, and gives what it was made of, for a driver that reads PEM by itself.
///
/// # Errors
/// As `tls_config`.
pub fn read_tls(tls: &Tls) -> Result<(ClientConfig, TlsFiles), String> {
    let authorities = read("tls.ca_file", &tls.ca_file, "")?;
    let trusted = trust(&authorities).ok_or_else(|| {
        let path = tls.ca_file.display();
        at(
            HERE,
            &format!("tls.ca_file {path} holds no certificate in PEM form"),
        )
    })?;
    let trusting = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| at(HERE, &format!("TLS: {error}")))?
        .with_root_certificates(trusted);
    let (Some(certificate_file), Some(key_file)) = (&tls.certificate_file, &tls.key_file) else {
        let files = TlsFiles {
            authorities,
            own: None,
        };
        return Ok((trusting.with_no_client_auth(), files));
    };
    let certificate = read("tls.certificate_file", certificate_file, "")?;
    let key = read_private("tls.key_file", key_file, "")?;
    // What is wrong in detail would show lines of the key's file.
    let config = own_certificate(&certificate, &key)
        .and_then(|(chain, key)| trusting.with_client_auth_cert(chain, key).ok())
        .ok_or_else(|| {
            let (path, key_path) = (certificate_file.display(), key_file.display());
            let names = format!("tls.certificate_file {path} and tls.key_file {key_path}");
            at(HERE, &format!("{names} do not fit together"))
        })?;
    let own = Some((certificate, key));
    Ok((config, TlsFiles { authorities, own }))
}

/// Says why a server cannot be spoken to over TLS; `place` is its address and port.
#[must_use]
pub fn explain_tls(tls: &Tls, place: &str, error: &rustls::Error) -> String {
    let named = match error {
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected: ServerName::IpAddress(address),
            ..
        }) => Some(std::net::IpAddr::from(*address).to_string()),
        rustls::Error::InvalidCertificate(CertificateError::NotValidForName) => {
            Some(place.to_owned())
        }
        _ => None,
    };
    let why = match (named, error) {
        (Some(address), _) => format!(
            "its certificate is not valid for {address}, at which it was reached; it must name that address"
        ),
        (None, rustls::Error::InvalidCertificate(why)) => {
            let path = tls.ca_file.display();
            format!("its certificate is not signed by tls.ca_file {path}: {why}")
        }
        (
            None,
            rustls::Error::AlertReceived(
                why @ (AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown),
            ),
        ) => format!(
            "it refuses this client's certificate, or that there is none: {why:?}; check tls.certificate_file"
        ),
        (None, why) => format!(
            "it does not speak TLS here: {why}; turn TLS on in the server, or remove access.tls"
        ),
    };
    at(place, &why)
}

/// Says that a server does not let a client in; `place` is its address and port.
#[must_use]
pub fn refuse_account(access: Option<&Access>, place: &str) -> String {
    let why = match access.and_then(|access| access.username.as_deref()) {
        Some(username) => {
            format!("the server refuses the account {username}; check its name and password")
        }
        None => "the server asks for an account; set access.username, and where its password is"
            .to_owned(),
    };
    at(place, &why)
}

fn at(place: &str, why: &str) -> String {
    format!("access failed on {place}: {why}")
}

fn from_environment(name: &str, username: &str) -> Result<String, String> {
    let password = std::env::var(name).unwrap_or_default();
    if password.is_empty() {
        let why = format!("the environment variable {name} is not set");
        return Err(at(
            HERE,
            &format!("{why}; set it to the password of {username}"),
        ));
    }
    Ok(password)
}

fn from_file(path: &Path, username: &str) -> Result<String, String> {
    let rest = format!("; it must hold the password of {username}");
    let bytes = read_private("password_file", path, &rest)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let password = text.strip_suffix('\r').unwrap_or(text);
    if password.is_empty() || password.contains(['\n', '\u{fffd}']) {
        let why = "holds no password: one line is wanted, and nothing else";
        return Err(at(HERE, &format!("password_file {} {why}", path.display())));
    }
    Ok(password.to_owned())
}

fn trust(pem: &[u8]) -> Option<RootCertStore> {
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        trusted.add(certificate.ok()?).ok()?;
    }
    (!trusted.is_empty()).then_some(trusted)
}

type OwnCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(certificate: &[u8], key: &[u8]) -> Option<OwnCertificate> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    Some((chain.ok()?, PrivateKeyDer::from_pem_slice(key).ok()?))
}

fn read(what: &str, path: &Path, rest: &str) -> Result<Vec<u8>, String> {
    read_all(open(what, path, rest)?, what, path, rest)
}

fn read_all(file: File, what: &str, path: &Path, rest: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    if read.map_err(|error| unreadable(what, path, rest, &error))? as u64 > MOST_BYTES {
        let why = format!("{what} {} is larger than 1 MiB", path.display());
        return Err(at(HERE, &why));
    }
    Ok(bytes)
}

/// Reads a file that nobody else may use; what is looked at is what was opened.
fn read_private(what: &str, path: &Path, rest: &str) -> Result<Vec<u8>, String> {
    let file = open(what, path, rest)?;
    let about = file
        .metadata()
        .map_err(|error| unreadable(what, path, rest, &error))?;
    let place = path.display();
    if ![rustix::process::geteuid().as_raw(), 0].contains(&about.uid()) {
        let why = "belongs to another user; it must belong to the one that runs this, or to root";
        return Err(at(HERE, &format!("{what} {place} {why}")));
    }
    if about.mode() & OTHERS != 0 {
        let why = format!(
            "may be used by others (mode {:04o}); chmod 600 it",
            about.mode() & MODE
        );
        return Err(at(HERE, &format!("{what} {place} {why}")));
    }
    read_all(file, what, path, rest)
}

fn open(what: &str, path: &Path, rest: &str) -> Result<File, String> {
    let unreadable = |error: io::Error| unreadable(what, path, rest, &error);
    // Without waiting: a pipe would keep a client until somebody writes into it.
    let opened = rustix::fs::open(path, OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let file = File::from(opened.map_err(|error| unreadable(error.into()))?);
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(at(
            HERE,
            &format!("{what} {} is no regular file", path.display()),
        ));
    }
    Ok(file)
}

fn unreadable(what: &str, path: &Path, rest: &str, error: &io::Error) -> String {
    let why = error.to_string();
    let why = why.split(" (os error").next().unwrap_or_default();
    at(
        HERE,
        &format!("{what} {} cannot be read: {why}{rest}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    use std::path::PathBuf;

    use super::*;

    fn access(password_env: Option<&str>, password_file: Option<PathBuf>) -> Access {
        Access {
            username: Some("loader".to_owned()),
            password_env: password_env.map(str::to_owned),
            password_file,
            tls: None,
        }
    }

    fn file(name: &str, text: &str, mode: u32) -> PathBuf {
        let path = std::env::temp_dir().join(format!("knickload-{}-{name}", std::process::id()));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refused(access: &Access) -> String {
        read_login(access).unwrap_err()
    }

    #[test]
    fn a_password_comes_from_a_file_without_the_end_of_its_line_and_is_never_shown() {
        let path = file("kept", "hush 42 \r\n", 0o600);
        let login = read_login(&access(None, Some(path.clone())))
            .unwrap()
            .unwrap();
        fs::remove_file(path).unwrap();
        assert_eq!(
            (login.username.as_str(), login.password.reveal()),
            ("loader", "hush 42 ")
        );
        assert!(!format!("{login:?}").contains("hush"));
    }

    #[test]
    fn what_is_no_file_is_refused_at_once_be_it_a_pipe() {
        let path = std::env::temp_dir().join(format!("knickload-{}-pipe", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let said = refused(&access(None, Some(path.clone())));
        fs::remove_file(&path).unwrap();
        assert!(said.ends_with("is no regular file"), "{said}");
    }

    #[test]
    fn a_password_comes_from_the_environment() {
        let login = read_login(&access(Some("PATH"), None)).unwrap().unwrap();
        assert_eq!(login.password.reveal(), std::env::var("PATH").unwrap());
    }
}
