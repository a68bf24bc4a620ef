//! Exceptions from `xtask/name_decisions.toml`, each with its reason.

use std::path::Path;

use serde::Deserialize;

use super::decision_finder::Finding;

/// Places where names may decide.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exceptions {
    /// Files that translate another library's names and texts into types.
    #[serde(default, rename = "adapter")]
    adapters: Vec<Adapter>,
    #[serde(default, rename = "exception")]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adapter {
    file: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    file: String,
    /// Function or constant.
    item: String,
    reason: String,
}

impl Exceptions {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let path = root.join("xtask/name_decisions.toml");
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("cannot parse {}: {error}", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the findings that no exception covers, exceptions that cover none, and exceptions without a reason.
    pub(super) fn find_violations(&self, findings: &[(String, Finding)]) -> Vec<String> {
        let new = findings.iter().filter(|(file, finding)| !self.allows(file, &finding.item)).map(|(file, finding)| {
            format!("{file}:{} ({}): a name decides by {}", finding.line, finding.item, finding.text)
        });
        let idle_adapters =
            self.adapters.iter().filter(|adapter| findings.iter().all(|(file, _)| *file != adapter.file)).map(
                |adapter| format!("name_decisions.toml: nothing in the adapter {} decides by a name", adapter.file),
            );
        let covers = |exception: &Exception, file: &String, finding: &Finding| {
            exception.file == *file && exception.item == finding.item
        };
        let idle = self
            .exceptions
            .iter()
            .filter(|exception| !findings.iter().any(|(file, finding)| covers(exception, file, finding)))
            .map(|exception| {
                format!("name_decisions.toml: nothing in {} of {} decides by a name", exception.item, exception.file)
            });
        let reasons = self.adapters.iter().map(|adapter| (&adapter.file, &adapter.reason));
        let reasons = reasons.chain(self.exceptions.iter().map(|exception| (&exception.file, &exception.reason)));
        let empty = reasons
            .filter(|(_, reason)| reason.trim().is_empty())
            .map(|(file, _)| format!("name_decisions.toml: an entry of {file} has no reason"));
        new.chain(idle_adapters).chain(idle).chain(empty).collect()
    }

    fn allows(&self, file: &str, item: &str) -> bool {
        self.adapters.iter().any(|adapter| adapter.file == file)
            || self.exceptions.iter().any(|exception| exception.file == file && exception.item == item)
    }
}
