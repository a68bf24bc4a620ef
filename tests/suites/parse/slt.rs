//! Parser of the sqllogictest format. Expected results are not read, because PostgreSQL gives them.

use super::conditions;
use super::loops::{Bindings, repetitions, substitute};
use crate::script::{Record, Script, Step};

#[cfg(test)]
mod tests;

/// Options of a query by which its rows are sorted before they are compared.
const SORTS: [&str; 4] = ["rowsort", "valuesort", "sort", "partialsort"];
/// Requirements of DuckDB's files that do not matter here, or that PostgreSQL judges record by record.
const HARMLESS_REQUIREMENTS: [&str; 21] = [
    "64bit",
    "allow_unsigned_extensions",
    "block_size",
    "core_functions",
    "exact_vector_size",
    "icu",
    "json",
    "longdouble",
    "no_alternative_verify",
    "no_extension_autoloading",
    "no_force_storage",
    "no_latest_storage",
    "no_vector_verification",
    "noforcestorage",
    "notmingw",
    "notwindows",
    "ram",
    "skip_reload",
    "strinline",
    "vacuum_rebuild_indexes",
    "vector_size",
];
/// Lines that change nothing here.
const IGNORED_LINES: [&str; 19] = [
    "awaitquery",
    "awaitstatement",
    "cluster-opt",
    "control",
    "endloop",
    "hash-threshold",
    "kv-batch-size",
    "load",
    "repeat",
    "reset",
    "result-check",
    "retry",
    "set",
    "skip_on_retry",
    "sleep",
    "subtest",
    "tags",
    "test-env",
    "traceoff",
];

/// Dialect of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SltDialect {
    Standard,
    /// A word after `statement ok` or `query TYPES` names a session.
    DuckDb,
}

/// Parses a file. `bindings` are variables that the program gives.
pub(crate) fn parse_slt(text: &str, dialect: SltDialect, bindings: &Bindings) -> Script {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut parser =
        Parser { lines: &lines, dialect, script: Script::default(), state: State::Running, next: Next::default() };
    parser.parse_block(0, lines.len(), bindings);
    if parser.script.unmet.is_some() {
        parser.script.steps.clear();
        parser.script.skipped.clear();
    }
    parser.script
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Between `mode skip` and `mode unskip`.
    Skipping,
    Halted,
}

/// Effect of earlier lines on the next record.
#[derive(Default)]
struct Next {
    is_excluded: bool,
    session: Option<String>,
}

struct Parser<'a> {
    lines: &'a [&'a str],
    dialect: SltDialect,
    script: Script,
    state: State,
    next: Next,
}

impl Parser<'_> {
    fn parse_block(&mut self, from: usize, to: usize, bindings: &Bindings) {
        let mut at = from;
        while at < to && self.state != State::Halted {
            let line = substitute(self.lines[at], bindings);
            let words: Vec<&str> = line.split_whitespace().collect();
            at = match words.first() {
                Some(&("loop" | "foreach" | "concurrentloop" | "concurrentforeach")) => {
                    let end = self.loop_end(at + 1, to);
                    for repeated in repetitions(&words, bindings) {
                        self.parse_block(at + 1, end, &repeated);
                    }
                    end + 1
                }
                Some(&("statement" | "query")) => self.parse_record(at, to, &words, bindings),
                Some(first) if !first.starts_with('#') => self.parse_line(at, to, &words, bindings),
                _ => at + 1,
            };
        }
    }

    /// Returns the position of the line that ends a loop.
    fn loop_end(&self, from: usize, to: usize) -> usize {
        let mut depth = 1;
        for at in from..to {
            match self.lines[at].split_whitespace().next() {
                Some("loop" | "foreach" | "concurrentloop" | "concurrentforeach") => depth += 1,
                Some("endloop") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        to
    }

    /// Parses a line that is no record, and returns the position after it.
    fn parse_line(&mut self, at: usize, to: usize, words: &[&str], bindings: &Bindings) -> usize {
        match words {
            ["skipif" | "onlyif", ..] => self.next.is_excluded |= !conditions::allows(words, bindings),
            ["halt", ..] => {
                if !std::mem::take(&mut self.next).is_excluded {
                    self.state = State::Halted;
                }
            }
            ["mode", "skip", ..] => self.state = State::Skipping,
            ["mode", "unskip", ..] => self.state = State::Running,
            ["mode", ..] => {}
            ["connection", name, ..] => self.next.session = Some((*name).to_owned()),
            ["restart" | "reconnect", ..] => self.script.steps.push(Step::Reconnect),
            ["require", name, ..] if HARMLESS_REQUIREMENTS.contains(name) => {}
            ["require" | "require-env", name, ..] => {
                self.script.unmet = Some(format!("{} {name}", words[0]));
                self.state = State::Halted;
            }
            [first, ..] if IGNORED_LINES.contains(first) => {}
            [first, ..] => {
                self.script.skip(first);
                return self.block_end(at, to);
            }
            [] => {}
        }
        at + 1
    }

    /// Parses a statement or a query, and returns the position after its expected result.
    fn parse_record(&mut self, at: usize, to: usize, words: &[&str], bindings: &Bindings) -> usize {
        let end = self.block_end(at, to);
        let is_sql = |line: &&&str| !line.starts_with("----");
        let sql: Vec<&str> = self.lines[at + 1..end].iter().take_while(is_sql).copied().collect();
        let next = std::mem::take(&mut self.next);
        if self.state == State::Skipping {
            self.script.skip("mode skip");
        } else if next.is_excluded {
            self.script.skip("skipif and onlyif");
        } else {
            self.script.push(&Record {
                line: at + 2,
                session: next.session.unwrap_or_else(|| self.session(words)),
                sql: substitute(&sql.join("\n"), bindings).replace("__TEST_DIR__", test_folder(bindings)),
                copy_data: None,
                ignores_order: words[0] == "query" && words.get(2).is_some_and(|options| sorts(options)),
            });
        }
        end
    }

    /// Returns the position of the blank line that ends a block.
    fn block_end(&self, from: usize, to: usize) -> usize {
        (from..to).find(|at| self.lines[*at].is_empty()).unwrap_or(to)
    }

    /// Returns the session that the line of a record names.
    fn session(&self, words: &[&str]) -> String {
        let names_session = self.dialect == SltDialect::DuckDb;
        let name =
            words.get(2).filter(|word| names_session && **word != "nosort" && !sorts(word) && !word.starts_with('#'));
        name.map_or_else(String::new, |name| (*name).to_owned())
    }
}

fn sorts(options: &str) -> bool {
    options.split(',').any(|option| SORTS.contains(&option.split('(').next().unwrap_or_default()))
}

fn test_folder(bindings: &Bindings) -> &str {
    bindings.get("TEST_DIR").map_or("__TEST_DIR__", String::as_str)
}
