//! Parser of psql scripts: SQL, the data of COPY, and the commands that decide what SQL runs.

use super::interpolate::{Variables, arguments, interpolate};
use crate::script::{Record, Script, Step};
use crate::sql::{CopyDirection, Statement, StatementEnd, TokenKind, next_token};

#[cfg(test)]
mod tests;

/// Line after the data of COPY.
const END_OF_DATA: &str = "\\.";
/// Commands that send the statement before them.
const SENDING_COMMANDS: [&str; 7] = ["g", "gx", "gset", "gexec", "gdesc", "crosstabview", "watch"];
/// First words of statements that follow a COPY without data.
const STATEMENT_WORDS: [&str; 14] = [
    "alter", "begin", "commit", "copy", "create", "delete", "drop", "insert", "rollback", "select", "set", "truncate",
    "update", "values",
];

/// Parses a script. `environment` has the variables that `\getenv` reads.
pub(crate) fn parse_psql(text: &str, environment: &Variables) -> Script {
    let mut parser = Parser {
        text,
        at: 0,
        lines: LineCounter::default(),
        variables: Variables::new(),
        environment,
        branches: Vec::new(),
        script: Script::default(),
    };
    while parser.parse_statement() {}
    parser.script
}

/// Branch of `\if`.
struct Branch {
    is_active: bool,
    /// Whether a branch of the same `\if` was active.
    was_taken: bool,
}

/// Counter of lines for positions that only rise.
#[derive(Default)]
struct LineCounter {
    offset: usize,
    newlines: usize,
}

impl LineCounter {
    fn line(&mut self, text: &str, offset: usize) -> usize {
        self.newlines += text[self.offset..offset].matches('\n').count();
        self.offset = offset;
        self.newlines + 1
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    lines: LineCounter,
    variables: Variables,
    environment: &'a Variables,
    branches: Vec<Branch>,
    script: Script,
}

impl<'a> Parser<'a> {
    /// Parses up to the end of a statement; false at the end of the script.
    fn parse_statement(&mut self) -> bool {
        let mut end = StatementEnd::default();
        let mut statement: Option<(usize, usize)> = None;
        while let Some(token) = next_token(self.text, self.at) {
            self.at = token.end;
            if token.kind == TokenKind::Symbol('\\') {
                let (name, argument_text) = self.take_command();
                if SENDING_COMMANDS.contains(&name) || name == ";" {
                    self.finish(statement);
                    if !matches!(name, "g" | "gx" | ";") {
                        self.script.skip(&format!("\\{name}"));
                    }
                    return true;
                }
                if matches!(name, "r" | "reset") {
                    statement = None;
                    end = StatementEnd::default();
                }
                self.run_command(name, argument_text);
            } else if end.is_reached(&token, self.text) {
                self.finish(statement);
                return true;
            } else {
                statement = Some((statement.map_or(token.start, |(start, _)| start), token.end));
            }
        }
        self.finish(statement);
        false
    }

    fn is_active(&self) -> bool {
        self.branches.iter().all(|branch| branch.is_active)
    }

    fn finish(&mut self, statement: Option<(usize, usize)>) {
        let Some((start, end)) = statement else { return };
        let sql = interpolate(&self.text[start..end], &self.variables);
        let takes_data = Statement::new(&sql).copy_direction() == Some(CopyDirection::FromClient);
        let copy_data = if takes_data { self.take_copy_data() } else { None };
        if self.is_active() {
            let line = self.lines.line(self.text, start);
            self.script.steps.push(Step::Run(Record { line, sql, copy_data, ..Record::default() }));
        }
    }

    /// Takes the data after a COPY. A COPY that is expected to fail has none.
    fn take_copy_data(&mut self) -> Option<String> {
        let first = self.line_end(self.at) + 1;
        let remaining = self.text.get(first..)?;
        let end = remaining.lines().position(|line| line == END_OF_DATA)?;
        let mut lines = remaining.lines();
        let line = lines.next().unwrap_or_default();
        let is_data = if line.trim().is_empty() { end == 1 } else { !begins_statement(line) };
        if !is_data {
            return None;
        }
        let data: String = remaining.split_inclusive('\n').take(end).collect();
        self.at = (first + data.len() + END_OF_DATA.len()).min(self.text.len());
        Some(data)
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find('\n').map_or(self.text.len(), |length| from + length)
    }

    /// Takes a command after its backslash: its name, and the text of its arguments, which end with the line or at the
    /// next command.
    fn take_command(&mut self) -> (&'a str, &'a str) {
        let line = &self.text[self.at..self.line_end(self.at)];
        let name_length = match line.chars().next() {
            Some(separator @ (';' | '\\')) => separator.len_utf8(),
            _ => line.find(|c: char| c.is_whitespace() || c == '\\' || c == ';').unwrap_or(line.len()),
        };
        let (name, remaining) = line.split_at(name_length);
        let mut is_quoted = false;
        let ends = |c: char| {
            is_quoted ^= c == '\'';
            c == '\\' && !is_quoted
        };
        let length = if matches!(name, ";" | "\\") { 0 } else { remaining.find(ends).unwrap_or(remaining.len()) };
        self.at += name_length + length;
        (name, &remaining[..length])
    }

    fn run_command(&mut self, name: &str, argument_text: &str) {
        let words = arguments(argument_text, &self.variables);
        let holds = words.first().is_some_and(|value| matches!(value.as_str(), "1" | "on" | "t" | "true" | "yes"));
        match name {
            "if" => self.branches.push(Branch { is_active: holds, was_taken: holds }),
            "elif" | "else" => {
                if let Some(branch) = self.branches.last_mut() {
                    branch.is_active = !branch.was_taken && (name == "else" || holds);
                    branch.was_taken |= branch.is_active;
                }
            }
            "endif" => drop(self.branches.pop()),
            _ if !self.is_active() => {}
            "set" => {
                if let Some((name, values)) = words.split_first() {
                    self.variables.insert(name.clone(), values.concat());
                }
            }
            "unset" => words.first().into_iter().for_each(|name| drop(self.variables.remove(name))),
            "getenv" => {
                if let [name, variable, ..] = words.as_slice()
                    && let Some(value) = self.environment.get(variable)
                {
                    self.variables.insert(name.clone(), value.clone());
                }
            }
            "q" | "quit" => self.at = self.text.len(),
            "." | "\\" | "r" | "reset" => {}
            _ => {
                self.script.skip(&format!("\\{name}"));
                if name == "copy" && Statement::new(argument_text).has_words(&["from", "stdin"]) {
                    drop(self.take_copy_data());
                }
            }
        }
    }
}

/// Returns whether a line is SQL or a command, not data of COPY.
fn begins_statement(line: &str) -> bool {
    let word = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let is_command = line.strip_prefix('\\').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    is_command || line.starts_with("--") || STATEMENT_WORDS.contains(&word.as_str())
}
