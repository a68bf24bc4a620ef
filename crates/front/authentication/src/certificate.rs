//! The certificate that new connections are shown: that of its files, also when these have changed. Connections that there are go on as they are.

use parking_lot::{Mutex, RwLock};

use crate::tls::{Tls, TlsError, TlsFiles};
use crate::watched::Watched;

/// Certificate and key, as clients are shown them now.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    watched: Mutex<Watched>,
    shown: RwLock<Tls>,
}

impl Certificate {
    /// Loads certificate and key from their files.
    ///
    /// # Errors
    /// [`TlsError`] where they cannot be used.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let mut watched = Watched::new(vec![files.certificate.clone(), files.key.clone()]);
        let read = watched.read().map_err(|(path, source)| TlsError::Read { path, source })?;
        let shown = RwLock::new(Tls::new(files, &read[0], &read[1])?);
        Ok(Self { files: files.clone(), watched: Mutex::new(watched), shown })
    }

    /// What a connection that begins now offers its client.
    #[must_use]
    pub fn shown(&self) -> Tls {
        self.shown.read().clone()
    }

    /// Shows what the files have now; `None` where that is what they had. Where one of two files was replaced before the other they do not fit each
    /// other, and the next look finds both.
    pub(crate) fn look(&self) -> Option<Result<(), TlsError>> {
        let read = self.watched.lock().look()?;
        let tls = read
            .map_err(|(path, source)| TlsError::Read { path, source })
            .and_then(|read| Tls::new(&self.files, &read[0], &read[1]));
        Some(tls.map(|tls| *self.shown.write() = tls))
    }
}
