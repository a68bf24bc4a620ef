//! Execution of statements and backslash commands, and display of their results.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt, pin_mut};
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{Error, SimpleQueryMessage};
use types::{Clock, SystemClock};

use super::connect::{self, Connection, ConnectionTarget};
use super::describe_commands;
use super::progress_line::ProgressLine;
use super::result_output::{Format, JsonForm, ResultRows};
use super::split_statements::{InputItem, split_input};

/// Rows formatted at a time: enough to align columns well, few enough that a long result starts to appear at once.
const ROWS_PER_SCREEN: usize = 1_000;
/// Bytes of a COPY message.
const COPY_CHUNK_BYTES: usize = 64 << 10;

/// Connection, with the display settings of its results.
pub(crate) struct Console {
    connection: Connection,
    target: ConnectionTarget,
    format: Format,
    timing: bool,
    clock: SystemClock,
}

/// Continuation after a command.
#[derive(PartialEq, Eq)]
pub(crate) enum Continuation {
    Continue,
    Quit,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the client is for")]
impl Console {
    pub(crate) fn new(connection: Connection, target: ConnectionTarget, format: Format, timing: bool) -> Self {
        Self { connection, target, format, timing, clock: SystemClock::new() }
    }

    /// Runs all statements and commands of `text`, and returns false at the first one that fails.
    pub(crate) async fn run_text(&mut self, text: &str) -> anyhow::Result<bool> {
        let (mut pieces, rest) = split_input(text);
        if !rest.trim().is_empty() {
            pieces.push(InputItem::Statement(rest));
        }
        for piece in pieces {
            let succeeded = match piece {
                InputItem::Statement(sql) => self.run_statement(&sql).await?,
                InputItem::Command(command) => match self.run_command(&command).await {
                    Ok(Continuation::Continue) => true,
                    Ok(Continuation::Quit) => return Ok(true),
                    Err(error) => {
                        eprintln!("{error:#}");
                        false
                    }
                },
            };
            if !succeeded {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one statement and shows its rows. Returns false if it failed on the server. Ctrl-C cancels it.
    pub(crate) async fn run_statement(&mut self, sql: &str) -> anyhow::Result<bool> {
        let start = self.clock.monotonic();
        let progress = ProgressLine::start(&self.target, &self.connection.client).await;
        let token = self.connection.client.cancel_token();
        let outcome = {
            let run = self.run_and_show(sql, &progress);
            pin_mut!(run);
            loop {
                tokio::select! {
                    outcome = &mut run => break outcome,
                    _ = tokio::signal::ctrl_c() => {
                        if let Err(error) = connect::cancel(&self.target, token.clone()).await {
                            eprintln!("cannot cancel: {error}");
                        }
                    }
                }
            }
        };
        progress.stop();
        self.show_notices();
        match outcome {
            Ok(()) => {}
            Err(error) => match error.as_db_error() {
                Some(told) => {
                    eprintln!("{}", format_error(told, sql));
                    return Ok(false);
                }
                None => return Err(anyhow::Error::new(error).context("the connection is lost")),
            },
        }
        if self.timing {
            println!("Time: {:.3} ms", (self.clock.monotonic() - start).as_secs_f64() * 1e3);
        }
        Ok(true)
    }

    async fn run_and_show(&self, sql: &str, progress: &ProgressLine) -> Result<(), Error> {
        // A simple query does not report column types, and only JSON needs them.
        let forms: Vec<JsonForm> = match self.format {
            Format::Json => {
                let prepared = self.connection.client.prepare(sql).await?;
                prepared.columns().iter().map(|column| JsonForm::from_type(column.type_())).collect()
            }
            _ => Vec::new(),
        };
        let messages = self.connection.client.simple_query_raw(sql).await?;
        pin_mut!(messages);
        let mut answer = ResultRows::default();
        let mut row_count = 0;
        let mut with_heading = true;
        while let Some(message) = messages.try_next().await? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    answer.json_forms.clone_from(&forms);
                    answer.columns = columns.iter().map(|column| column.name().to_owned()).collect();
                    (with_heading, row_count) = (true, 0);
                }
                SimpleQueryMessage::Row(row) => {
                    answer.rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
                    row_count += 1;
                    if ROWS_PER_SCREEN <= answer.rows.len() {
                        progress.stop();
                        print(&answer.render(self.format, with_heading));
                        with_heading = false;
                        answer.rows.clear();
                    }
                }
                SimpleQueryMessage::CommandComplete(affected) => {
                    progress.stop();
                    if !answer.columns.is_empty() {
                        print(&answer.render(self.format, with_heading));
                        if self.format == Format::Table {
                            println!("({row_count} {})\n", if row_count == 1 { "row" } else { "rows" });
                        }
                        answer = ResultRows::default();
                    } else if self.format == Format::Table && 0 < affected {
                        println!("{affected} {}", if affected == 1 { "row" } else { "rows" });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn show_notices(&mut self) {
        while let Ok(notice) = self.connection.notices.try_recv() {
            eprintln!("{}:  {}", notice.severity(), notice.message());
        }
    }

    /// Runs a backslash command, which is passed without its backslash.
    pub(crate) async fn run_command(&mut self, command: &str) -> anyhow::Result<Continuation> {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = argument.trim().trim_end_matches(';').trim();
        match name {
            "q" | "quit" => return Ok(Continuation::Quit),
            "timing" => {
                self.timing = !self.timing;
                println!("Timing is {}.", if self.timing { "on" } else { "off" });
            }
            "format" => {
                self.format = clap::ValueEnum::from_str(argument, true)
                    .map_err(|_| anyhow::anyhow!("\\format takes table, csv or json"))?;
            }
            "i" => {
                let text = std::fs::read_to_string(argument).with_context(|| format!("cannot read {argument}"))?;
                Box::pin(self.run_text(&text)).await?;
            }
            "copy" => self.copy(argument).await?,
            "?" | "help" => println!("{}", describe_commands::COMMAND_HELP),
            _ => match describe_commands::command_queries(name, argument) {
                Some(queries) => {
                    for query in queries {
                        self.run_statement(&query).await?;
                    }
                }
                None => anyhow::bail!("unknown command \\{name}; \\? lists them"),
            },
        }
        Ok(Continuation::Continue)
    }

    /// Runs `\copy table from file` or `\copy (query) to file`: COPY with a file on the client's machine.
    async fn copy(&mut self, argument: &str) -> anyhow::Result<()> {
        let lowered = argument.to_ascii_lowercase();
        let client = &self.connection.client;
        let (at, keyword) = [(lowered.rfind(" from "), "FROM STDIN"), (lowered.rfind(" to "), "TO STDOUT")]
            .into_iter()
            .filter_map(|(at, keyword)| Some((at?, keyword)))
            .max()
            .context("\\copy takes TABLE from FILE [(options)] or TABLE to FILE [(options)]")?;
        let (subject, rest) = argument.split_at(at);
        let rest = rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim();
        let (path, options) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let path = path.trim_matches('\'');
        let sql = format!("COPY {subject} {keyword} {options}");
        if keyword == "FROM STDIN" {
            let rows = copy_in(client, &sql, Path::new(path)).await?;
            println!("COPY {rows}");
        } else {
            let data = client.copy_out(&sql).await?;
            pin_mut!(data);
            let mut file = std::fs::File::create(path).with_context(|| format!("cannot create {path}"))?;
            while let Some(chunk) = data.next().await {
                file.write_all(&chunk?).with_context(|| format!("cannot write {path}"))?;
            }
        }
        Ok(())
    }
}

async fn copy_in(client: &tokio_postgres::Client, sql: &str, path: &Path) -> anyhow::Result<u64> {
    use tokio::io::AsyncReadExt;
    let mut file = tokio::fs::File::open(path).await.with_context(|| format!("cannot open {}", path.display()))?;
    let sink = client.copy_in(sql).await?;
    pin_mut!(sink);
    loop {
        let mut chunk = Vec::with_capacity(COPY_CHUNK_BYTES);
        if file.read_buf(&mut chunk).await.with_context(|| format!("cannot read {}", path.display()))? == 0 {
            return Ok(sink.finish().await?);
        }
        sink.send(Bytes::from(chunk)).await?;
    }
}

/// Formats a server's error like psql: the line with a caret under the position, then detail, hint and context.
fn format_error(error: &DbError, sql: &str) -> String {
    let mut text = format!("{}:  {} ({})", error.severity(), error.message(), error.code().code());
    if let Some(ErrorPosition::Original(position)) = error.position() {
        let before: String = sql.chars().take((*position as usize).saturating_sub(1)).collect();
        let line_number = before.matches('\n').count();
        let column = before.chars().rev().take_while(|character| *character != '\n').count();
        let line = sql.lines().nth(line_number).unwrap_or("");
        let label = format!("LINE {}: ", line_number + 1);
        let caret = " ".repeat(label.len() + column);
        text.push_str(&format!("\n{label}{line}\n{caret}^"));
    }
    for (label, value) in [("DETAIL", error.detail()), ("HINT", error.hint()), ("CONTEXT", error.where_())] {
        if let Some(value) = value {
            text.push_str(&format!("\n{label}:  {value}"));
        }
    }
    text
}

/// Writes to standard output. If the reader has closed it (`| head`), the program exits quietly.
fn print(text: &str) {
    if std::io::stdout().write_all(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}
