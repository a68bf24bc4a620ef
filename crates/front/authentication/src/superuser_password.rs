//! Superuser's password from a file: the bootstrap role gets it at the start and whenever the file changes. SQL cannot
//! change it then, so that it is defined in one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::{Change, Role};
use parking_lot::Mutex;
use storage_error::from_transaction;
use txn::{Isolation, Transactions};
use types::{Condition, Random, SqlError, SqlResult};

use crate::file_credentials::PasswordError;
use crate::scram_verifier::{create_verifier, matches_password};
use crate::watched_files::{FilesContent, WatchedFiles};

/// Attempts to change the role while concurrent transactions change it too.
const ATTEMPTS_MAX: usize = 10;

/// Password of the bootstrap superuser, defined by a file.
#[derive(Debug)]
pub struct SuperuserPassword {
    path: PathBuf,
    watched: Mutex<WatchedFiles>,
}

impl SuperuserPassword {
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), watched: Mutex::new(WatchedFiles::new(vec![path.to_owned()])) }
    }

    /// Reads the file and gives the role its password.
    pub(crate) async fn set_from_file(
        &self,
        transactions: &Arc<Transactions>,
        random: &dyn Random,
    ) -> Result<(), PasswordError> {
        let read = self.watched.lock().read();
        self.apply(read, transactions, random).await
    }

    /// Gives the role the password of the file if that has changed; `None` if not.
    pub(crate) async fn reload_if_changed(
        &self,
        transactions: &Arc<Transactions>,
        random: &dyn Random,
    ) -> Option<Result<(), PasswordError>> {
        let read = self.watched.lock().read_if_changed()?;
        Some(self.apply(read, transactions, random).await)
    }

    /// Gives the role the password in `read`; after a failure the next check tries it again.
    async fn apply(
        &self,
        read: FilesContent,
        transactions: &Arc<Transactions>,
        random: &dyn Random,
    ) -> Result<(), PasswordError> {
        let read = read.map_err(|(path, source)| PasswordError::Read { path, source })?;
        let password = single_line(&read[0]).ok_or_else(|| PasswordError::NoPassword { path: self.path.clone() })?;
        set_password(transactions, random, password).await.map_err(|refused| {
            self.watched.lock().mark_changed();
            PasswordError::Refused { path: self.path.clone(), error: Box::new(refused) }
        })
    }

    /// Refuses to change the superuser's password by SQL.
    ///
    /// # Errors
    /// `55000` if `role` is the bootstrap superuser.
    pub fn refuse_change(&self, role: &Role) -> SqlResult<()> {
        if role.oid != Role::BOOTSTRAP {
            return Ok(());
        }
        let message = format!("the password of role \"{}\" is set by the file {}", role.name, self.path.display());
        let hint = "Change the password in that file, or in the Kubernetes secret that it is mounted from.";
        Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message).with_hint(hint))
    }
}

/// Returns the single line of a file without its line end; `None` if it is not one line of UTF-8.
fn single_line(content: &[u8]) -> Option<&str> {
    let text = str::from_utf8(content).ok()?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    (!text.is_empty() && !text.contains(['\n', '\r', '\0'])).then_some(text)
}

/// Gives the bootstrap superuser the password, or the verifier that the text is, unless it has it already.
async fn set_password(transactions: &Arc<Transactions>, random: &dyn Random, password: &str) -> SqlResult<()> {
    let mut failure = None;
    for _ in 0..ATTEMPTS_MAX {
        let mut transaction = transactions.begin(Isolation::ReadCommitted);
        let view = transaction.view().state;
        let role = view.role(Role::BOOTSTRAP).expect("the bootstrap role is always in the catalog");
        if role.scram.as_ref().is_some_and(|verifier| matches_password(verifier, password)) {
            return Ok(());
        }
        let role = Role { scram: Some(create_verifier(password, random)), ..Role::clone(role) };
        tracing::info!(role = role.name, "setting the superuser's password from the password file");
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
        assert_eq!(single_line(b"secret"), Some("secret"));
        assert_eq!(single_line(b" s\xc3\xa9cret \n"), Some(" s\u{e9}cret "));
        assert_eq!(single_line(b"secret\r\n"), Some("secret"));
        for none in [&b""[..], b"\n", b"two\nlines", b"secret\n\n", b"nul\0", b"\xff"] {
            assert_eq!(single_line(none), None, "{none:?}");
        }
    }
}
