//! The command that starts workers: the program itself, or a wrapper such as `ip netns exec` or `taskset`.

use std::path::Path;
use std::process::Command;

use cluster_model::ClusterId;

/// Placeholder for the number of the worker's cluster.
const CLUSTER_PLACEHOLDER: &str = "{cluster}";
/// Placeholder for the worker's slot.
const SLOT_PLACEHOLDER: &str = "{slot}";

/// Wrapper command that is put before the worker's program; empty if workers are started directly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launcher(Vec<String>);

/// Invalid wrapper command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LauncherError {
    #[error("the launcher command of workers is empty")]
    Empty,
    #[error("{word} in the launcher command has an invalid placeholder; only {{cluster}} and {{slot}} are replaced")]
    InvalidPlaceholder { word: String },
}

impl Launcher {
    /// Parses a command of words separated by spaces, with the placeholders `{cluster}` and `{slot}`.
    ///
    /// # Errors
    /// [`LauncherError`].
    pub fn parse(text: &str) -> Result<Self, LauncherError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(LauncherError::Empty);
        }
        let unknown = words.iter().find(|word| fill_placeholders(word, "", "").contains(['{', '}']));
        match unknown {
            Some(word) => Err(LauncherError::InvalidPlaceholder { word: word.clone() }),
            None => Ok(Self(words)),
        }
    }

    /// Returns the command that starts `program` for a slot; the caller adds the program's arguments.
    pub(crate) fn command(&self, program: &Path, cluster: ClusterId, slot: u32) -> Command {
        let (cluster, slot) = (cluster.0.to_string(), slot.to_string());
        let mut words = self.0.iter().map(|word| fill_placeholders(word, &cluster, &slot));
        let Some(first) = words.next() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(words).arg(program);
        command
    }
}

/// Replaces the placeholders of a word.
fn fill_placeholders(word: &str, cluster: &str, slot: &str) -> String {
    word.replace(CLUSTER_PLACEHOLDER, cluster).replace(SLOT_PLACEHOLDER, slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(launcher: &Launcher) -> Vec<String> {
        let command = launcher.command(Path::new("/bin/kiln"), ClusterId(7), 2);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_str().expect("arguments are UTF-8").to_owned()).collect()
    }

    #[test]
    fn placeholders_are_replaced() {
        assert_eq!(words(&Launcher::default()), ["/bin/kiln"]);
        let launcher = Launcher::parse(" ip netns  exec net-{cluster}-{slot}").expect("parse a valid command");
        assert_eq!(words(&launcher), ["ip", "netns", "exec", "net-7-2", "/bin/kiln"]);
    }

    #[test]
    fn invalid_placeholders_are_refused() {
        assert_eq!(Launcher::parse("  "), Err(LauncherError::Empty));
        for wrong in ["taskset -c {core}", "run {slot", "run slot}"] {
            assert!(matches!(Launcher::parse(wrong), Err(LauncherError::InvalidPlaceholder { .. })), "{wrong}");
        }
    }
}
