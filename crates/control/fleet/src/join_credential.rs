//! Credentials of a worker's first join: a ticket from the instance, or a token that a third party verifies.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cluster_model::WorkerId;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use types::Random;

use crate::join::{Base64Bytes, Hello, Token};
use crate::join_ticket::Ticket;

/// Credential with which a worker joins for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinCredential {
    /// Ticket from the instance that started the worker.
    Ticket(Ticket),
    /// Token of a worker that somebody else started, such as a Kubernetes service account token.
    Token(TokenFile),
}

/// Token in a file that is rotated from time to time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
    /// Random id of this worker.
    worker: WorkerId,
    /// Certificate of the instance's authority; the token is sent only to a server with a certificate signed by it.
    authority: CertificateDer<'static>,
}

impl TokenFile {
    /// Creates a credential from the path of the token and the path of the authority's certificate (PEM).
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn new(path: PathBuf, authority: &Path, random: &dyn Random) -> io::Result<Self> {
        let text = fs::read(authority)?;
        let authority = CertificateDer::from_pem_slice(&text).map_err(|error| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("no PEM certificate in the certificate authority file: {error:?}"),
            )
        })?;
        Ok(Self { path, worker: WorkerId(random.next_u64()), authority })
    }
}

impl JoinCredential {
    /// Returns the id under which the worker joins.
    pub(crate) fn worker_id(&self) -> WorkerId {
        match self {
            Self::Ticket(ticket) => ticket.worker,
            Self::Token(token) => token.worker,
        }
    }

    /// Returns the certificate that authenticates the instance.
    pub(crate) fn authority(&self) -> &CertificateDer<'static> {
        match self {
            Self::Ticket(ticket) => &ticket.authority,
            Self::Token(token) => &token.authority,
        }
    }

    /// Whether the worker joins with a token: the instance has not started it and cannot kill its process.
    pub(crate) fn is_token(&self) -> bool {
        matches!(self, Self::Token(_))
    }

    /// Adds the credential to a hello message.
    pub(crate) fn add_to_hello(&self, hello: Hello) -> io::Result<Hello> {
        Ok(match self {
            Self::Ticket(ticket) => Hello { secret: Some(Base64Bytes(ticket.secret.to_vec())), ..hello },
            Self::Token(token) => {
                let token = fs::read_to_string(&token.path)?.trim().to_owned();
                Hello { token: Some(Token(token)), ..hello }
            }
        })
    }
}
