//! How a client proves who it is, and whom it trusts: what `spec::Access` names, read when it is needed.
//!
//! A configuration holds names of secrets alone. A password is in an environment variable or in a file
//! that nobody else may read; it is never part of a message, and a `Secret` that is printed says nothing.
//! Certificates are PEM. Servers are addressed by IP address, so theirs must name it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::spec::{Access, Tls};

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
        (Some(name), None) => from_environment(name)?,
        (None, Some(path)) => from_file(path)?,
        _ => {
            return Err(format!(
                "access: {username}: exactly one of password_env and password_file must say where the \
                 password is; set one of them"
            ));
        }
    };
    Ok(Some(Login {
        username,
        password: Secret(password),
    }))
}

/// Makes what a client needs to speak TLS: whom it trusts and, if the spec names one, its own certificate.
///
/// # Errors
/// Says which file is wrong and what to do.
pub fn tls_config(tls: &Tls) -> Result<ClientConfig, String> {
    let mut trusted = RootCertStore::empty();
    for certificate in certificates("ca_file", &tls.ca_file)? {
        trusted.add(certificate).map_err(|error| {
            let path = tls.ca_file.display();
            format!("ca_file: {path}: {error}; give the PEM certificate of the authority that signed the servers'")
        })?;
    }
    let trusting = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("tls: {error}"))?
        .with_root_certificates(trusted);
    match (&tls.certificate_file, &tls.key_file) {
        (None, None) => Ok(trusting.with_no_client_auth()),
        (Some(certificate_file), Some(key_file)) => {
            let chain = certificates("certificate_file", certificate_file)?;
            let key = private_key(key_file)?;
            trusting.with_client_auth_cert(chain, key).map_err(|error| {
                let (path, key_path) = (certificate_file.display(), key_file.display());
                format!("certificate_file: {path} with key_file {key_path}: {error}; give a pair that belongs together")
            })
        }
        _ => Err(
            "tls: certificate_file and key_file belong together; give both or neither".to_owned(),
        ),
    }
}

fn from_environment(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(password) if !password.is_empty() => Ok(password),
        Ok(_) => Err(format!(
            "password_env: {name} is empty; set it to the password"
        )),
        Err(std::env::VarError::NotPresent) => Err(format!(
            "password_env: {name} is not set; set it to the password"
        )),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!(
            "password_env: {name} is not UTF-8; set it to the password"
        )),
    }
}

fn from_file(path: &Path) -> Result<String, String> {
    let bytes = read_private("password_file", path)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        format!(
            "password_file: {}: is not UTF-8; write the password into it",
            path.display()
        )
    })?;
    // An editor ends the last line; the password is what is on it.
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err(format!(
            "password_file: {}: is empty; write the password into it",
            path.display()
        ));
    }
    Ok(password.to_owned())
}

fn certificates(field: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let next = "give a file of PEM certificates";
    let found: Result<Vec<_>, PemError> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!(
            "{field}: {}: holds no certificate; {next}",
            path.display()
        )),
        Err(PemError::Io(error)) => Err(format!("{field}: {}: {error}; {next}", path.display())),
        Err(_) => Err(format!("{field}: {}: is not PEM; {next}", path.display())),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let pem = read_private("key_file", path)?;
    // What is wrong in detail would show lines of the file.
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        let path = path.display();
        format!("key_file: {path}: holds no private key; give a PEM file with one that has no passphrase")
    })
}

/// Reads a file that only this user may read; what is looked at is the file that is opened.
fn read_private(field: &str, path: &Path) -> Result<Vec<u8>, String> {
    let say = |error: &dyn fmt::Display| {
        format!(
            "{field}: {}: {error}; give a file that this user may read",
            path.display()
        )
    };
    let mut file = File::open(path).map_err(|error| say(&error))?;
    let about = file.metadata().map_err(|error| say(&error))?;
    let user = rustix::process::geteuid().as_raw();
    if about.uid() != user {
        return Err(format!(
            "{field}: {}: belongs to user {}, not to the one who runs this ({user}); give a file of your own",
            path.display(),
            about.uid()
        ));
    }
    if about.mode() & OTHERS != 0 {
        return Err(format!(
            "{field}: {}: is open to others than its owner (mode {:04o}); run chmod 600 on it",
            path.display(),
            about.mode() & MODE
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| say(&error))?;
    Ok(bytes)
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
    fn a_file_that_others_may_read_or_write_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o602] {
            let path = file(&format!("open-{mode:o}"), "hush\n", mode);
            let said = refused(&access(None, Some(path.clone())));
            fs::remove_file(&path).unwrap();
            assert!(
                said.contains(&format!("mode {mode:04o}")) && said.contains("chmod 600"),
                "{said}"
            );
            assert!(
                said.contains(path.to_str().unwrap()) && !said.contains("hush"),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_empty_is_named() {
        let path = file("empty", "\n", 0o600);
        assert!(refused(&access(None, Some(path.clone()))).contains("is empty"));
        fs::remove_file(&path).unwrap();
        assert!(refused(&access(None, Some(path))).contains("password_file: "));
        assert!(
            refused(&access(Some("KNICKLOAD_NEVER_SET"), None))
                .contains("KNICKLOAD_NEVER_SET is not set")
        );
        assert!(refused(&access(None, None)).contains("exactly one"));
    }

    #[test]
    fn a_password_comes_from_the_environment() {
        let login = read_login(&access(Some("PATH"), None)).unwrap().unwrap();
        assert_eq!(login.password.reveal(), std::env::var("PATH").unwrap());
    }

    #[test]
    fn a_file_that_is_no_certificate_is_named() {
        let path = file("ca", "no certificate\n", 0o600);
        let tls = Tls {
            ca_file: path.clone(),
            certificate_file: None,
            key_file: None,
        };
        let said = tls_config(&tls).unwrap_err();
        fs::remove_file(&path).unwrap();
        assert!(
            said.starts_with(&format!("ca_file: {}", path.display())),
            "{said}"
        );
        assert!(tls_config(&tls).unwrap_err().starts_with("ca_file: "));
    }
}
