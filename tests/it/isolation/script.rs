//! Parses interleavings: scripts, their steps and expected outcomes. `hermitage.txt` describes the format.

/// Interleaving at one isolation level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) name: String,
    /// Isolation level as BEGIN names it.
    pub(super) level: String,
    pub(super) steps: Vec<Step>,
}

/// Step of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) client: usize,
    /// Statement to send; `None` if the client's waiting statement resumes.
    pub(super) sql: Option<String>,
    pub(super) outcome: ExpectedOutcome,
}

/// Expected outcome of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExpectedOutcome {
    /// It succeeds, whatever its rows.
    Ok,
    /// These rows: columns joined by `|`.
    Rows(Vec<String>),
    Waits,
    /// It fails with the SQLSTATE.
    Fails(String),
}

/// Returns the setup statements of a text for `engine`.
pub(super) fn setup(text: &str, engine: &str) -> Vec<String> {
    let of_engine = |line: &str| {
        let (engines, sql) = line.trim().strip_prefix("setup")?.split_once(": ")?;
        (engines.is_empty() || engines.trim() == engine).then(|| sql.to_owned())
    };
    text.lines().filter_map(of_engine).collect()
}

/// Parses the scripts of a text for `engine`, one for each level.
pub(super) fn parse(text: &str, engine: &str) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    let mut levels = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') || content.starts_with("setup") {
            continue;
        }
        if let Some(head) = content.strip_prefix("== ") {
            let (name, named) = head.rsplit_once(": ").unwrap_or_else(|| panic!("line {line}: a script has levels"));
            let before = scripts.len();
            for level in named.split_whitespace() {
                let level = level.replace('-', " ");
                scripts.push(Script { name: name.to_owned(), level, steps: Vec::new() });
            }
            levels = scripts.len() - before;
            continue;
        }
        let step = step(content, line, engine);
        let first = scripts.len() - levels;
        scripts[first..].iter_mut().for_each(|script| script.steps.push(step.clone()));
    }
    scripts
}

fn step(content: &str, line: usize, engine: &str) -> Step {
    let (action, outcome) = match content.split_once(" => ") {
        Some((action, outcome)) => (action, self::outcome(outcome, engine)),
        None => (content, ExpectedOutcome::Ok),
    };
    let (client, sql) = match action.split_once(": ") {
        Some((client, sql)) => (client, Some(sql.to_owned())),
        None => (action.strip_suffix(" resumes").unwrap_or(action), None),
    };
    let client = client.trim().parse().unwrap_or_else(|_| panic!("line {line}: {client} is no client"));
    Step { line, client, sql, outcome }
}

fn outcome(written: &str, engine: &str) -> ExpectedOutcome {
    let own = written.split("; ").find_map(|part| part.strip_prefix(engine)?.strip_prefix(": "));
    let written = own.unwrap_or(written).trim();
    let is_state = written.len() == 5 && written.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    match written {
        "ok" => ExpectedOutcome::Ok,
        "waits" => ExpectedOutcome::Waits,
        "none" => ExpectedOutcome::Rows(Vec::new()),
        state if is_state => ExpectedOutcome::Fails(state.to_owned()),
        rows => ExpectedOutcome::Rows(rows.split_whitespace().map(str::to_owned).collect()),
    }
}
