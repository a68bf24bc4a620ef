//! Superuser's password from a file: the bootstrap role gets it at the start and whenever the file changes. SQL cannot
//! change it then, so that it is defined in one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::{Change, Role};
use parking_lot::Mutex;
use storage_error::from_transaction;
use txn::{Isolation, Transactions};
use types::{Condition, Random, SqlError, SqlResult};

use crate::credentials::PasswordError;
use crate::verifier::{is_of, verifier};
use crate::watched::{Content, Watched};

/// Attempts to change the role while concurrent transactions change it too.
const ATTEMPTS_MAX: usize = 10;

/// Password of the bootstrap superuser, defined by a file.
#[derive(Debug)]
pub struct SuperuserPassword {
    path: PathBuf,
    watched: Mutex<Watched>,
}

impl SuperuserPassword {
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), watched: Mutex::new(Watched::new(vec![path.to_owned()])) }
    }

    /// Reads the file and gives the role its password.
    pub(crate) async fn set(&self, transactions: &Arc<Transactions>, random: &dyn Random) -> Result<(), PasswordError> {
        let read = self.watched.lock().read();
        self.take(read, transactions, random).await
    }

    /// Gives the role the password of the file if that has changed; `None` if not.
    pub(crate) async fn look(
        &self,
        transactions: &Arc<Transactions>,
        random: &dyn Random,
    ) -> Option<Result<(), PasswordError>> {
        let read = self.watched.lock().look()?;
        Some(self.take(read, transactions, random).await)
    }

    /// Gives the role the password in `read`; after a failure the next check tries it again.
    async fn take(
        &self,
        read: Content,
        transactions: &Arc<Transactions>,
        random: &dyn Random,
    ) -> Result<(), PasswordError> {
        let read = read.map_err(|(path, source)| PasswordError::Read { path, source })?;
        let password = line(&read[0]).ok_or_else(|| PasswordError::NoPassword { path: self.path.clone() })?;
        put(transactions, random, password).await.map_err(|refused| {
            self.watched.lock().forget();
            PasswordError::Refused { path: self.path.clone(), refused: Box::new(refused) }
        })
    }

    /// Refuses to change the superuser's password by SQL.
    ///
    /// # Errors
    /// `55000` if `role` is the bootstrap superuser.
    pub fn refuse_another(&self, role: &Role) -> SqlResult<()> {
        if role.oid != Role::BOOTSTRAP {
            return Ok(());
        }
        let message = format!("the password of role \"{}\" is set by the file {}", role.name, self.path.display());
        let hint = "Change the password in that file, or in the Kubernetes secret that it is mounted from.";
        Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message).with_hint(hint))
    }
}

/// Returns the single line of a file without its line end; `None` if it is not one line of UTF-8.
fn line(content: &[u8]) -> Option<&str> {
    let text = str::from_utf8(content).ok()?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    (!text.is_empty() && !text.contains(['\n', '\r', '\0'])).then_some(text)
}

/// Gives the bootstrap superuser the password, or the verifier that the text is, unless it has it already.
async fn put(transactions: &Arc<Transactions>, random: &dyn Random, password: &str) -> SqlResult<()> {
    let mut failure = None;
    for _ in 0..ATTEMPTS_MAX {
        let mut transaction = transactions.begin(Isolation::ReadCommitted);
        let view = transaction.view().state;
        let role = view.role(Role::BOOTSTRAP).expect("the bootstrap role is always in the catalog");
        if role.scram.as_ref().is_some_and(|known| is_of(known, password)) {
            return Ok(());
        }
        let role = Role { scram: Some(verifier(password, random)), ..Role::clone(role) };
        tracing::info!(role = role.name, "setting the superuser's password from its file");
        transaction.stage(vec![Change::PutRole(Arc::new(role))]).map_err(from_transaction)?;
        match transaction.commit().await {
            Ok(_) => return Ok(()),
            Err(error) => failure = Some(from_transaction(error)),
        }
    }
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line() {
        assert_eq!(line(b"secret"), Some("secret"));
        assert_eq!(line(b" s\xc3\xa9cret \n"), Some(" s\u{e9}cret "));
        assert_eq!(line(b"secret\r\n"), Some("secret"));
        for none in [&b""[..], b"\n", b"two\nlines", b"secret\n\n", b"nul\0", b"\xff"] {
            assert_eq!(line(none), None, "{none:?}");
        }
    }
}
