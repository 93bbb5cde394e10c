//! Whom a client of `MongoDB` trusts, and what it shows of itself: TLS for a driver that takes files alone.

use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mongodb::options::{Tls as DriverTls, TlsOptions};
use rustix::fs::{MemfdFlags, memfd_create};
use rustls::ClientConnection;
use rustls_pki_types::ServerName;

use crate::access::{explain_tls, read_tls, tls_config};
use crate::spec::Tls;

const PROBE: Duration = Duration::from_secs(5);
const REFUSAL: Duration = Duration::from_millis(500);
/// For what may come before a refusal: tickets of sessions.
const LOOKS: u8 = 3;

/// Files for the driver, which reads them while a client is made; they are in memory alone, and go with this.
pub struct Trust {
    authorities: File,
    pair: Option<File>,
}

impl Trust {
    /// Looks at the files that the spec names, and keeps what was looked at; certificate and key are one
    /// file, as the driver wants.
    ///
    /// # Errors
    /// Says which file is wrong and what to do.
    pub fn new(tls: &Tls) -> Result<Self, String> {
        // The driver says less about a file that it cannot use.
        let (_, files) = read_tls(tls)?;
        let keep = |parts: &[&[u8]]| {
            let kept = keep_in_memory(parts);
            kept.map_err(|error| format!("cannot keep certificates in memory: {error}"))
        };
        let own = files.own.as_ref();
        Ok(Self {
            authorities: keep(&[&files.authorities])?,
            pair: own
                .map(|(certificate, key)| keep(&[certificate, b"\n", key]))
                .transpose()?,
        })
    }

    /// Gives the driver's options: certificates are verified, and so is the server's name.
    #[must_use]
    pub fn options(&self) -> DriverTls {
        let mut options = TlsOptions::default();
        let path = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        options.ca_file_path = Some(path(&self.authorities));
        options.cert_key_file_path = self.pair.as_ref().map(path);
        DriverTls::Enabled(options)
    }
}

fn keep_in_memory(parts: &[&[u8]]) -> io::Result<File> {
    let mut file = File::from(memfd_create("certificate", MemfdFlags::CLOEXEC)?);
    for part in parts {
        file.write_all(part)?;
    }
    Ok(file)
}

/// Says what is wrong with the TLS of a server, by speaking to it once more; none if nothing is.
///
/// The driver tells it as one of the many things that a server may suffer from.
#[must_use]
pub fn find_wrong(tls: &Tls, address: &str, port: u16, place: &str) -> Option<String> {
    let config = tls_config(tls).ok()?;
    let address: IpAddr = address.parse().ok()?;
    let name = ServerName::from(address);
    let mut connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut socket = TcpStream::connect_timeout(&SocketAddr::new(address, port), PROBE).ok()?;
    socket.set_read_timeout(Some(PROBE)).ok()?;
    // With TLS 1.3 a server says only after the handshake what it thinks of a client's certificate.
    let error = connection.complete_io(&mut socket).err().or_else(|| {
        socket.set_read_timeout(Some(REFUSAL)).ok()?;
        (0..LOOKS).find_map(|_| connection.complete_io(&mut socket).err())
    })?;
    let error = error.get_ref()?.downcast_ref()?;
    Some(explain_tls(tls, place, error))
}
