//! Wording rules: breaches in doc comments, names and logs, counted by rule and crate.
//!
//! - `doc_comments.rs`: doc comments and their sentences
//! - `declarations.rs`: types, functions, fields and the texts of logs and errors
//! - `baseline.rs`: the numbers of today, which only fall
//! - `random_sample.rs`: names and texts drawn at random, for a stranger to explain

mod baseline;
mod declarations;
mod doc_comments;
mod random_sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use self::baseline::Baseline;
pub(crate) use self::random_sample::draw_sample;
use crate::workspace::Workspace;

/// A rule of plain words that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// A doc comment opens with a noun, an article or a verb, not with What, Who, Of, Where or How.
    DocOpening,
    /// No two types that a whole crate sees have one name.
    SameName,
    /// A log text begins with what it is about.
    LogSubject,
    /// A sentence of a doc comment has at most 40 words.
    LongSentence,
}

impl Rule {
    const ALL: [Self; 4] = [Self::DocOpening, Self::SameName, Self::LogSubject, Self::LongSentence];

    fn name(self) -> &'static str {
        match self {
            Self::DocOpening => "doc-opening",
            Self::SameName => "same-name",
            Self::LogSubject => "log-subject",
            Self::LongSentence => "long-sentence",
        }
    }
}

/// A breach of a rule, at a line of a file.
struct Offence {
    rule: Rule,
    crate_name: String,
    location: String,
    text: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.location, self.rule.name(), self.text)
    }
}

/// Number of offences by rule and crate.
type OffenceCounts = BTreeMap<Rule, BTreeMap<String, usize>>;

/// Compares the offences with the baseline: none may be new, and a baseline that is too high must be lowered.
pub(crate) fn check_words(workspace: &Workspace) -> Vec<String> {
    let baseline = match Baseline::read(&workspace.root) {
        Ok(baseline) => baseline,
        Err(problem) => return vec![problem],
    };
    match find_offences(workspace) {
        Ok(offences) => baseline.compare(&count_by_rule(&offences), &offences),
        Err(problem) => vec![problem],
    }
}

/// Lists the offences, those of one crate if it is named.
pub(crate) fn list_offences(workspace: &Workspace, crate_name: Option<&str>) -> Result<String, String> {
    if let Some(name) = crate_name.filter(|name| workspace.crates.iter().all(|member| member.name != *name)) {
        return Err(format!("there is no crate {name}"));
    }
    let offences = find_offences(workspace)?;
    let wanted = offences.iter().filter(|offence| crate_name.is_none_or(|name| offence.crate_name == name));
    Ok(wanted.map(|offence| format!("{offence}\n")).collect())
}

/// Writes a baseline in which no number is higher than before.
pub(crate) fn lower_baseline(workspace: &Workspace) -> Result<(), String> {
    let counts = count_by_rule(&find_offences(workspace)?);
    Baseline::read(&workspace.root)?.lowered(&counts).write(&workspace.root)
}

fn find_offences(workspace: &Workspace) -> Result<Vec<Offence>, String> {
    let mut offences = Vec::new();
    for (path, text) in &workspace.sources {
        let Some(member) = workspace.crates.iter().find(|member| path.starts_with(&member.folder)) else { continue };
        let offence = |rule, line: usize, text: String| Offence {
            rule,
            crate_name: member.name.clone(),
            location: format!("{}:{line}", workspace.display_path(path)),
            text,
        };
        for comment in doc_comments::doc_comments(text) {
            if let Some(word) = doc_comments::banned_opening(&comment.text) {
                offences.push(offence(Rule::DocOpening, comment.line, format!("a doc comment opens with {word:?}")));
            }
            for sentence in doc_comments::long_sentences(&comment.text) {
                offences.push(offence(Rule::LongSentence, comment.line, sentence));
            }
        }
    }
    let declared = declarations::read(workspace)?;
    offences.extend(declared.iter().flat_map(|(name, declared)| {
        let texts = declared.logs.iter().filter(|log| doc_comments::lacks_subject(&log.text)).map(|log| Offence {
            rule: Rule::LogSubject,
            crate_name: name.clone(),
            location: log.location.clone(),
            text: format!("{:?} does not begin with what it is about", log.text),
        });
        texts.chain(declared.duplicate_types().map(|(location, text)| Offence {
            rule: Rule::SameName,
            crate_name: name.clone(),
            location,
            text,
        }))
    }));
    Ok(offences)
}

fn count_by_rule(offences: &[Offence]) -> OffenceCounts {
    let mut counts = OffenceCounts::new();
    for offence in offences {
        *counts.entry(offence.rule).or_default().entry(offence.crate_name.clone()).or_default() += 1;
    }
    counts
}
