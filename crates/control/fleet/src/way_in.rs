//! How a worker comes in for the first time: invited, by a ticket, or by a token with which others vouch for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cluster_model::WorkerId;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use types::Random;

use crate::join::{Base64, Hello, Token};
use crate::ticket::Ticket;

/// What a worker has of its instance before it has come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WayIn {
    Ticket(Ticket),
    Token(TokenFile),
}

/// A token that lies in a file, in which it is exchanged for another one from time to time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
    /// Drawn.
    worker: WorkerId,
    /// The instance's: nobody else is shown the token.
    authority: CertificateDer<'static>,
}

impl TokenFile {
    /// The token of a file, for the instance that is known by the certificate of another file.
    ///
    /// # Errors
    /// There is no certificate there.
    pub fn new(path: PathBuf, authority: &Path, random: &dyn Random) -> io::Result<Self> {
        let text = fs::read(authority)?;
        let authority = CertificateDer::from_pem_slice(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("there is no certificate in it: {error:?}"))
        })?;
        Ok(Self { path, worker: WorkerId(random.next_u64()), authority })
    }
}

impl WayIn {
    /// Who it is to be.
    pub(crate) fn worker(&self) -> WorkerId {
        match self {
            Self::Ticket(ticket) => ticket.worker,
            Self::Token(token) => token.worker,
        }
    }

    pub(crate) fn authority(&self) -> &CertificateDer<'static> {
        match self {
            Self::Ticket(ticket) => &ticket.authority,
            Self::Token(token) => &token.authority,
        }
    }

    /// Whether nobody has invited it: somebody else has made it, and sees to its end.
    pub(crate) fn is_by_token(&self) -> bool {
        matches!(self, Self::Token(_))
    }

    /// Shows what it has for the first time.
    pub(crate) fn show(&self, hello: Hello) -> io::Result<Hello> {
        Ok(match self {
            Self::Ticket(ticket) => Hello { secret: Some(Base64(ticket.secret.to_vec())), ..hello },
            Self::Token(token) => {
                let token = fs::read_to_string(&token.path)?.trim().to_owned();
                Hello { token: Some(Token(token)), ..hello }
            }
        })
    }
}
