//! Expands file patterns such as `/data/*.csv`.

use std::path::{Path, PathBuf};

use types::{Condition, SqlError, SqlResult};

use crate::file_error::{FileOperation, cannot_open};

/// Returns the files that match `pattern`, sorted; the path itself if it has no `*`, `?` or `[`, or exists as written.
///
/// # Errors
/// 58P01 if nothing matches; errors of the system for a folder that cannot be read.
pub fn expand_pattern(pattern: &str) -> SqlResult<Vec<PathBuf>> {
    let path = PathBuf::from(pattern);
    if !is_pattern(pattern) || path.exists() {
        return Ok(vec![path]);
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let name = component.as_os_str();
        match name.to_str().filter(|name| is_pattern(name)) {
            None => {
                for path in &mut found {
                    path.push(name);
                }
                found.retain(|path| path.exists());
            }
            Some(pattern) => {
                let mut matched = Vec::new();
                for folder in &found {
                    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                    if !folder.is_dir() {
                        continue;
                    }
                    let entries =
                        folder.read_dir().map_err(|error| cannot_open(folder, FileOperation::Reading, &error))?;
                    for entry in entries {
                        let entry = entry.map_err(|error| cannot_open(folder, FileOperation::Reading, &error))?;
                        let name = entry.file_name();
                        let is_match = name.to_str().is_some_and(|name| matches(pattern, name));
                        if is_match {
                            matched.push(folder.join(name));
                        }
                    }
                }
                found = matched;
            }
        }
    }
    found.retain(|path| path.is_file());
    found.sort();
    if found.is_empty() {
        return Err(SqlError::new(Condition::UndefinedFile, format!("no file matches \"{pattern}\"")));
    }
    Ok(found)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns whether `name` matches `pattern`: `*` matches any run, `?` any character, `[a-z]` and `[!a-z]` one of a set.
///
/// As in a shell, a leading dot must be matched explicitly.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Backtracking point: after the last `*` in the pattern, and the start of the text tried behind it.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => match match_set(&pattern[p..], name[n]) {
                Some((length, is_member)) => is_member.then_some(p + length),
                // Without a closing bracket, `[` matches itself.
                None => (name[n] == '[').then_some(p + 1),
            },
            Some(literal) => (*literal == name[n]).then_some(p + 1),
            None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                p = next;
                n += 1;
            }
            (None, Some((after_star, start))) => {
                retry = Some((after_star, start + 1));
                p = after_star;
                n = start + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

/// Returns the length of the set at the start of `pattern`, and whether it has `character`; `None` without a closing
/// bracket.
fn match_set(pattern: &[char], character: char) -> Option<(usize, bool)> {
    let is_negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if is_negated { 2 } else { 1 };
    // A closing bracket at the start is a member.
    let close = first + 1 + pattern.get(first + 1..)?.iter().position(|sign| *sign == ']')?;
    let members = &pattern[first..close];
    let mut is_member = false;
    let mut at = 0;
    while at < members.len() {
        match members[at..] {
            [low, '-', high, ..] => {
                is_member |= (low..=high).contains(&character);
                at += 3;
            }
            [single, ..] => {
                is_member |= single == character;
                at += 1;
            }
            [] => break,
        }
    }
    Some((close + 1, is_member != is_negated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("*.csv", ".hidden.csv", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab1", false),
            ("part-*-[0-9]", "part-x-y-7", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_names_its_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.txt"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("d.csv")).unwrap();
        let found = expand_pattern(&format!("{}/*.csv", folder.path().display())).unwrap();
        assert_eq!(found, [folder.path().join("a.csv"), folder.path().join("b.csv")]);
        let deep = expand_pattern(&format!("{}/[a-b]*", folder.path().display())).unwrap();
        assert_eq!(deep.len(), 2);
        let nothing = expand_pattern(&format!("{}/*.parquet", folder.path().display())).unwrap_err();
        assert_eq!(nothing.condition, Condition::UndefinedFile);
    }
}
