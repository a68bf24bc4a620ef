//! Certificate of the server, reloaded when its files change. Existing connections are not affected.

use parking_lot::{Mutex, RwLock};

use crate::tls_acceptor::{Tls, TlsError, TlsFiles};
use crate::watched_files::WatchedFiles;

/// Certificate and key that new connections are shown.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    watched: Mutex<WatchedFiles>,
    current: RwLock<Tls>,
}

impl Certificate {
    /// Loads certificate and key from their files.
    ///
    /// # Errors
    /// [`TlsError`] if they cannot be used.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let mut watched = WatchedFiles::new(vec![files.certificate.clone(), files.key.clone()]);
        let read = watched.read().map_err(|(path, source)| TlsError::Read { path, source })?;
        let shown = RwLock::new(Tls::new(files, &read[0], &read[1])?);
        Ok(Self { files: files.clone(), watched: Mutex::new(watched), current: shown })
    }

    /// Returns the TLS configuration for a new connection.
    #[must_use]
    pub fn current_tls(&self) -> Tls {
        self.current.read().clone()
    }

    /// Reloads the files if they have changed; `None` if not. If only one of the two has been replaced yet, they do not
    /// match; the next check finds both.
    pub(crate) fn reload_if_changed(&self) -> Option<Result<(), TlsError>> {
        let read = self.watched.lock().read_if_changed()?;
        let tls = read
            .map_err(|(path, source)| TlsError::Read { path, source })
            .and_then(|read| Tls::new(&self.files, &read[0], &read[1]));
        Some(tls.map(|tls| *self.current.write() = tls))
    }
}
