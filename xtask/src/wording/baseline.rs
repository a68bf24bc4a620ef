//! The numbers of offences that a checkout may have. They only fall.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Offence, OffenceCounts, Rule};

/// Numbers of offences by rule and crate, as `xtask/words.toml` holds them; a crate without a number may have none.
pub(super) struct Baseline(OffenceCounts);

impl Baseline {
    #[cfg(test)]
    pub(super) fn new(counts: OffenceCounts) -> Self {
        Self(counts)
    }

    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let path = baseline_path(root);
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let table: toml::Table =
            toml::from_str(&text).map_err(|error| format!("cannot parse {}: {error}", path.display()))?;
        if let Some(unknown) = table.keys().find(|key| Rule::ALL.iter().all(|rule| rule.name() != *key)) {
            return Err(format!("xtask/words.toml: there is no rule {unknown}"));
        }
        let mut counts = OffenceCounts::new();
        for rule in Rule::ALL {
            for (name, count) in table.get(rule.name()).and_then(toml::Value::as_table).into_iter().flatten() {
                let count = count.as_integer().and_then(|count| usize::try_from(count).ok());
                let count = count.ok_or_else(|| format!("xtask/words.toml: {name} has no number"))?;
                counts.entry(rule).or_default().insert(name.clone(), count);
            }
        }
        Ok(Self(counts))
    }

    /// Problems where the numbers differ: with the offences where there are more, in one line where there are fewer.
    pub(super) fn compare(&self, counts: &OffenceCounts, offences: &[Offence]) -> Vec<String> {
        let mut problems = Vec::new();
        for rule in Rule::ALL {
            for (name, count) in counts.get(&rule).into_iter().flatten() {
                let allowed = self.allowed_count(rule, name);
                if allowed < *count {
                    problems.push(format!("{name} breaks {} {count} times, {allowed} are allowed:", rule.name()));
                    let of_crate = offences.iter().filter(|each| each.rule == rule && each.crate_name == *name);
                    problems.extend(of_crate.map(|offence| format!("  {offence}")));
                }
            }
            for (name, allowed) in self.0.get(&rule).into_iter().flatten() {
                let count = counts.get(&rule).and_then(|counts| counts.get(name)).copied().unwrap_or_default();
                if count < *allowed {
                    let rule = rule.name();
                    problems.push(format!(
                        "{name} breaks {rule} {count} times, no longer {allowed}: run `cargo xtask words --lower`"
                    ));
                }
            }
        }
        problems
    }

    fn allowed_count(&self, rule: Rule, name: &str) -> usize {
        self.0.get(&rule).and_then(|counts| counts.get(name)).copied().unwrap_or_default()
    }

    /// The smaller number of each pair.
    pub(super) fn lowered(&self, counts: &OffenceCounts) -> Self {
        let mut lowered = OffenceCounts::new();
        for (rule, counts) in counts {
            for (name, count) in counts {
                let least = self.allowed_count(*rule, name).min(*count);
                if least != 0 {
                    lowered.entry(*rule).or_default().insert(name.clone(), least);
                }
            }
        }
        Self(lowered)
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), String> {
        let mut text =
            "# Breaches of the rules of plain words that are left, by rule and crate (docs/development.md, \"Words\").\n"
                .to_owned();
        for (rule, counts) in &self.0 {
            let _ = writeln!(text, "\n[{}]", rule.name());
            for (name, count) in counts {
                let _ = writeln!(text, "{name} = {count}");
            }
        }
        fs::write(baseline_path(root), text).map_err(|error| format!("cannot write xtask/words.toml: {error}"))
    }
}

fn baseline_path(root: &Path) -> PathBuf {
    root.join("xtask/words.toml")
}
