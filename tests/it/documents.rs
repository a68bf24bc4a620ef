//! Examples of the documents: the blocks of a page of `docs/reference` or `docs/guide` run in order against a new
//! warehouse, and print what the page says.
//!
//! A block's info string is its kind. `sql` runs in psql, `sh` in a shell, one session of each for a page; a `text` block
//! right after it is its output. `no-check` behind the kind leaves a block out, or accepts any output.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;

use crate::server::{Server, kiln};

/// Longest run of one block.
const BLOCK_SECONDS_MAX: u64 = 120;
/// Pages that run at a time.
const PARALLEL_PAGES: usize = 4;
/// Folder and port that the guide names.
const GUIDE_FOLDER: &str = "/tmp/kiln-guide";
const GUIDE_PORT: &str = "5433";

/// Form in which the pages of a folder show results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Rows alone, values divided by ` | `; of an error or notice the first line. A block without output prints nothing.
    Reference,
    /// As psql prints them for people. A line `…` stands for lines that are left out. A block without output fails with no
    /// error.
    Guide,
}

/// Fenced block of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Number of its opening fence's line.
    line: usize,
    info: String,
    lines: Vec<String>,
}

impl Block {
    fn kind(&self) -> &str {
        self.info.split(' ').next().unwrap_or("")
    }

    fn is_checked(&self) -> bool {
        !self.info.split(' ').any(|word| word == "no-check")
    }
}

/// Returns the fenced blocks of a page, without their indentation.
fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        match open.take() {
            None => {
                if let Some(info) = text.strip_prefix("```") {
                    open = Some((indent, Block { line: number, info: info.trim().to_owned(), lines: Vec::new() }));
                }
            }
            Some((_, block)) if text.trim_end() == "```" => found.push(block),
            Some((outer, mut block)) => {
                block.lines.push(line[indent.min(outer)..].to_owned());
                open = Some((outer, block));
            }
        }
    }
    found
}

/// Interpreter that runs the blocks of one kind in one session.
struct Session {
    process: Child,
    input: ChildStdin,
    output: mpsc::Receiver<String>,
    /// Statement that prints a text, before and after it.
    print: (&'static str, &'static str),
    blocks: usize,
}

impl Session {
    /// Starts a command whose errors are interleaved with its output.
    fn start(mut command: Command, print: (&'static str, &'static str)) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an installed program starts");
        let input = process.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(process.stdout.take().expect("stdout is piped")).lines();
        let (send, output) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Self { process, input, output, print, blocks: 0 }
    }

    /// Runs a text and returns the lines that it prints.
    fn run(&mut self, text: &str) -> Vec<String> {
        self.blocks += 1;
        let end = format!("--block {} has ended--", self.blocks);
        let (before, after) = self.print;
        writeln!(self.input, "{text}\n{before}{end}{after}").expect("the session reads");
        let mut lines = Vec::new();
        loop {
            match self.output.recv_timeout(Duration::from_secs(BLOCK_SECONDS_MAX)) {
                Ok(line) if line == end => return lines,
                Ok(line) => lines.push(line.trim_end().to_owned()),
                Err(error) => {
                    lines.push(format!("(the block does not end: {error})"));
                    return lines;
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Server, folder and sessions of one page.
struct PageRun {
    style: Style,
    server: Server,
    folder: TempDir,
    psql: Option<Session>,
    shell: Option<Session>,
}

impl PageRun {
    fn new(style: Style) -> Self {
        let folder = TempDir::with_prefix("kiln-page-").expect("a temporary folder can be made");
        Self { style, server: Server::start(), folder, psql: None, shell: None }
    }

    fn folder(&self) -> &str {
        self.folder.path().to_str().expect("a temporary folder has a name in ASCII")
    }

    /// Returns a command whose standard error is its standard output, in the page's folder.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]).args(words).current_dir(self.folder.path());
        let programs = kiln().parent().expect("a program lies in a folder").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.display())).env("LC_ALL", "C.UTF-8").env_remove("PGTZ");
        command
    }

    fn run(&mut self, block: &Block) -> Vec<String> {
        let port = self.server.pg_port.to_string();
        let folder = self.folder().to_owned();
        let text = block.lines.join("\n").replace(GUIDE_FOLDER, &folder).replace(GUIDE_PORT, &port);
        let session = if block.kind() == "sql" { self.psql() } else { self.shell() };
        let lines = session.run(&text).into_iter();
        lines.map(|line| line.replace(&folder, GUIDE_FOLDER).replace(&port, GUIDE_PORT)).collect()
    }

    fn psql(&mut self) -> &mut Session {
        let (port, dir) = (self.server.pg_port.to_string(), format!("dir={}", self.folder()));
        let mut words = vec!["psql", "-X", "-h", "127.0.0.1", "-p", &port, "-U", "kiln", "-d", "kiln", "-v", &dir];
        if self.style == Style::Reference {
            words.extend(["-q", "-A", "-t", "-F", " | ", "-P", "null=NULL"]);
        }
        let command = self.command(&words);
        self.psql.get_or_insert_with(|| Session::start(command, ("\\echo '", "'")))
    }

    fn shell(&mut self) -> &mut Session {
        let command = self.command(&["sh"]);
        self.shell.get_or_insert_with(|| Session::start(command, ("echo '", "'")))
    }
}

/// Drops what follows the first line of each error, warning and notice.
fn first_lines(lines: Vec<String>) -> Vec<String> {
    let mut in_message = false;
    let further = ["LINE ", "DETAIL:", "HINT:", "CONTEXT:", "QUERY:"];
    lines
        .into_iter()
        .filter(|line| {
            if ["ERROR:  ", "FATAL:  ", "WARNING:  ", "NOTICE:  ", "INFO:  "]
                .iter()
                .any(|start| line.starts_with(start))
            {
                in_message = true;
                return true;
            }
            // Dependent objects are listed over several lines.
            let is_dependency = line.starts_with("drop cascades to ") || line.contains(" depends on ");
            let is_further = further.iter().any(|start| line.starts_with(start)) || line.trim() == "^" || is_dependency;
            in_message &= is_further;
            !in_message
        })
        .collect()
}

/// Whether the lines are those of the page, in which `…` stands for any lines.
fn matches(expected: &[String], lines: &[String]) -> bool {
    let Some(gap) = expected.iter().position(|line| line.trim() == "…") else { return expected == lines };
    let (before, after) = (&expected[..gap], &expected[gap + 1..]);
    lines.starts_with(before) && (gap..=lines.len()).any(|at| matches(after, &lines[at..]))
}

/// Runs a page and returns what differs.
fn check_page(path: &Path, style: Style) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut run = PageRun::new(style);
    let mut blocks: VecDeque<Block> = blocks(&text).into();
    let mut problems = Vec::new();
    while let Some(block) = blocks.pop_front() {
        if !matches!(block.kind(), "sql" | "sh") || !block.is_checked() {
            continue;
        }
        let output = blocks.pop_front_if(|next| next.kind() == "text");
        let mut lines = run.run(&block);
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let expected: Vec<String> = match &output {
            Some(output) if !output.is_checked() => continue,
            Some(output) => output.lines.iter().map(|line| line.trim_end().to_owned()).collect(),
            None => Vec::new(),
        };
        let is_right = match (style, output.is_some()) {
            (Style::Reference, _) => {
                lines = first_lines(lines);
                // A page need not repeat what a statement remarks.
                let is_notice = |line: &String| line.starts_with("NOTICE:  ");
                if !expected.iter().any(is_notice) {
                    lines.retain(|line| !is_notice(line));
                }
                expected == lines
            }
            (Style::Guide, true) => matches(&expected, &lines),
            (Style::Guide, false) => !lines.iter().any(|line| line.contains("ERROR:")),
        };
        if !is_right {
            problems.push(format!(
                "{}:{}\n--- the page says\n{}\n--- psql prints\n{}",
                path.display(),
                block.line,
                expected.join("\n"),
                lines.join("\n")
            ));
        }
    }
    problems
}

/// Runs all pages of some folders of `docs`, and panics if any differs.
fn check_pages(folders: &[&str], style: Style) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries =
            fs::read_dir(docs.join(folder)).unwrap_or_else(|error| panic!("cannot list docs/{folder}: {error}"));
        let paths = entries.flatten().map(|entry| entry.path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    // `DOC=select` runs the pages whose names begin so.
    if let Ok(wanted) = std::env::var("DOC") {
        pages.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&wanted)));
    }
    pages.sort();
    let (pages, problems) = (Mutex::new(pages), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_PAGES {
            scope.spawn(|| {
                let next_page = || pages.lock().expect("nobody panics with it").pop();
                while let Some(page) = next_page() {
                    let found = check_page(&page, style);
                    problems.lock().expect("nobody panics with it").extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().expect("nobody panics with it");
    assert!(problems.is_empty(), "{} blocks differ:\n{}", problems.len(), problems.join("\n\n"));
}

/// Whether psql is installed; says so in one line if it is not.
fn has_psql() -> bool {
    let found = Command::new("psql").arg("--version").stdout(Stdio::null()).status();
    let has = found.is_ok_and(|status| status.success());
    if !has {
        println!("skipped: psql is not installed");
    }
    has
}

#[test]
fn examples_of_the_reference_print_what_it_says() {
    if has_psql() {
        check_pages(&["reference", "reference/sql"], Style::Reference);
    }
}

#[test]
fn examples_of_the_guide_print_what_it_says() {
    if has_psql() {
        check_pages(&["guide"], Style::Guide);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn literals_of_the_table_of_types_have_their_types() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/types.md"));
    let page = page.expect("the page is there");
    let table = page.split("\n## Arrays").next().expect("a split has a first part");
    let server = Server::start();
    let client = server.connect().await;
    let mut literals = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let (name, literal) = (cells[0].split('(').next().expect("a split has a first part"), cells[4]);
        let query = format!("SELECT pg_typeof({literal})::text");
        let found: String =
            client.query_one(&query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error}")).get(0);
        assert_eq!(found, name, "{query}");
        literals += 1;
    }
    assert!(literals > 15, "the table of types has been found");
}

#[test]
fn blocks_are_found_with_their_indentation_removed() {
    let found = blocks("a\n   ```sql no-check\n   SELECT 1\n     ;\n   ```\n```text\n1\n```\n");
    let block = |line, info: &str, lines: &[&str]| Block {
        line,
        info: info.to_owned(),
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(found, [block(2, "sql no-check", &["SELECT 1", "  ;"]), block(6, "text", &["1"])]);
    assert!(!found[0].is_checked() && found[1].is_checked());
}

#[test]
fn lines_that_are_left_out_match_any_lines() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a … c"), &lines("a b b c")));
    assert!(matches(&lines("a …"), &lines("a b")));
    assert!(!matches(&lines("a … c"), &lines("a b")));
    assert!(!matches(&lines("a c"), &lines("a b c")));
}

#[test]
fn of_a_message_the_first_line_is_compared() {
    let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first_lines(lines("ERROR:  a\nLINE 1: b\n        ^\nHINT:  c\n1")), lines("ERROR:  a\n1"));
}
