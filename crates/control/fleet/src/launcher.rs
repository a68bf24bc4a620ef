//! By what workers are started: the program itself, or another command that becomes it, on a network, in a group or on cores of the worker's own.

use std::path::Path;
use std::process::Command;

use cluster_model::ClusterId;

/// What stands for the number of a worker's cluster, and for its slot there.
const CLUSTER: &str = "{cluster}";
const SLOT: &str = "{slot}";

/// The words of a command before the worker's own; none where workers are started as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launcher(Vec<String>);

/// A command that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LauncherError {
    #[error("it says no command")]
    Empty,
    #[error("{word} has braces around something else than cluster or slot")]
    Unknown { word: String },
}

impl Launcher {
    /// Of a text: words between spaces, where `{cluster}` and `{slot}` stand for the worker's.
    ///
    /// # Errors
    /// [`LauncherError`].
    pub fn parse(text: &str) -> Result<Self, LauncherError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(LauncherError::Empty);
        }
        let unknown = words.iter().find(|word| filled(word, "", "").contains(['{', '}']));
        match unknown {
            Some(word) => Err(LauncherError::Unknown { word: word.clone() }),
            None => Ok(Self(words)),
        }
    }

    /// The command that starts `program` for a slot; what is added to it are the program's arguments.
    pub(crate) fn command(&self, program: &Path, cluster: ClusterId, slot: u32) -> Command {
        let (cluster, slot) = (cluster.0.to_string(), slot.to_string());
        let mut words = self.0.iter().map(|word| filled(word, &cluster, &slot));
        let Some(first) = words.next() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(words).arg(program);
        command
    }
}

fn filled(word: &str, cluster: &str, slot: &str) -> String {
    word.replace(CLUSTER, cluster).replace(SLOT, slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(launcher: &Launcher) -> Vec<String> {
        let command = launcher.command(Path::new("/bin/kiln"), ClusterId(7), 2);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_str().expect("it is text").to_owned()).collect()
    }

    #[test]
    fn a_worker_is_started_by_what_is_said_with_its_own_numbers() {
        assert_eq!(said(&Launcher::default()), ["/bin/kiln"]);
        let launcher = Launcher::parse(" ip netns  exec net-{cluster}-{slot}").expect("it is a command");
        assert_eq!(said(&launcher), ["ip", "netns", "exec", "net-7-2", "/bin/kiln"]);
    }

    #[test]
    fn what_nothing_stands_for_is_refused() {
        assert_eq!(Launcher::parse("  "), Err(LauncherError::Empty));
        for wrong in ["taskset -c {core}", "run {slot", "run slot}"] {
            assert!(matches!(Launcher::parse(wrong), Err(LauncherError::Unknown { .. })), "{wrong}");
        }
    }
}
