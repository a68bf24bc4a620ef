//! `kiln sql`, the client: runs statements from `-c`, files or a prompt on one connection, and prints rows as a table,
//! CSV or JSON.
//!
//! - `connect.rs`: the connection to a server.
//! - `split_statements.rs`: splits input into statements and backslash commands.
//! - `console.rs`: runs them and shows the results.
//! - `result_output.rs`: formats rows.
//! - `describe_commands.rs`: the queries of the `\d` commands.
//! - `interactive_prompt.rs`: the interactive prompt.
//! - `progress_line.rs`: the progress line of a long statement.

mod connect;
mod console;
mod describe_commands;
mod interactive_prompt;
mod progress_line;
mod result_output;
mod split_statements;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use futures::future::BoxFuture;
use tokio_postgres::Client;

use self::connect::ConnectionTarget;
use self::console::Console;
use self::result_output::Format;

/// Options of `kiln sql`. Those of the connection default to PostgreSQL's environment variables.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct SqlArguments {
    /// Server to connect to, as postgresql://user:password@host:port/database; overrides the single options
    url: Option<String>,

    /// Server's host
    #[arg(short = 'h', long, env = "PGHOST", default_value = "127.0.0.1")]
    host: String,

    /// Server's port
    #[arg(short, long, env = "PGPORT", default_value_t = 5433)]
    port: u16,

    /// Role to connect as
    #[arg(short = 'U', long, env = "PGUSER", default_value = "kiln")]
    username: String,

    /// Database to connect to
    #[arg(short, long, env = "PGDATABASE", default_value = "kiln")]
    dbname: String,

    /// File with the role's password; the variable PGPASSWORD takes precedence
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// TLS mode: disable, prefer, require (encrypted but not verified) or verify-full
    #[arg(long, env = "PGSSLMODE", default_value = "prefer")]
    sslmode: String,

    /// PEM file with the certificate authorities that verify-full trusts
    #[arg(long, env = "PGSSLROOTCERT", value_name = "FILE")]
    sslrootcert: Option<PathBuf>,

    /// Run these statements and exit; may be given several times
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,

    /// Run the statements of this file and exit; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Output format of rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Print the time of each statement
    #[arg(long)]
    timing: bool,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Connects and runs the statements of `-c` and `-f`, or else an interactive prompt. The exit code is a failure if a
/// statement of `-c` or `-f` failed.
///
/// # Errors
/// Returns an error if the address, the TLS mode or a certificate is not valid, a file cannot be read, or the
/// connection fails.
pub fn run(arguments: SqlArguments) -> BoxFuture<'static, anyhow::Result<ExitCode>> {
    Box::pin(run_unboxed(arguments))
}

async fn run_unboxed(arguments: SqlArguments) -> anyhow::Result<ExitCode> {
    let target = match &arguments.url {
        Some(url) => ConnectionTarget::from_url(url)?,
        None => {
            let mut target = ConnectionTarget::from_parts(
                &arguments.host,
                arguments.port,
                &arguments.username,
                &arguments.dbname,
                &arguments.sslmode,
                arguments.sslrootcert.as_deref(),
            )?;
            if let Some(password) = read_password(&arguments)? {
                target.config.password(password);
            }
            target
        }
    };
    let connection = connect::connect(&target).await?;
    let mut console = Console::new(connection, target, arguments.format, arguments.timing);

    let batch = !arguments.command.is_empty() || !arguments.file.is_empty() || !std::io::stdin().is_terminal();
    if !batch {
        interactive_prompt::run(&mut console).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut texts = arguments.command;
    for path in &arguments.file {
        texts.push(if path.as_os_str() == "-" { read_stdin()? } else { read_file(path)? });
    }
    if texts.is_empty() {
        texts.push(read_stdin()?);
    }
    for text in &texts {
        if !console.run_text(text).await? {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Connects to `url`, `postgresql://user:password@host:port/database?sslmode=…`. Dropping the client closes the
/// connection.
///
/// # Errors
/// Returns an error if the URL is not valid, the server cannot be reached, or it refuses the connection.
pub fn connect(url: &str) -> BoxFuture<'_, anyhow::Result<Client>> {
    Box::pin(async { Ok(connect::connect(&ConnectionTarget::from_url(url)?).await?.client) })
}

/// Environment variable with the path of the superuser's password file on the server's own machine. It is used only for
/// the role `kiln` on a local host, so that the password is not sent to other servers.
const PASSWORD_FILE_VARIABLE: &str = "KILN_PASSWORD_FILE";

/// Returns the password in PGPASSWORD, or else the text of the password file without trailing line breaks.
fn read_password(arguments: &SqlArguments) -> anyhow::Result<Option<String>> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let is_local_superuser =
        arguments.username == "kiln" && ["127.0.0.1", "::1", "localhost"].contains(&arguments.host.as_str());
    let superuser_file = || std::env::var_os(PASSWORD_FILE_VARIABLE).filter(|_| is_local_superuser).map(PathBuf::from);
    let Some(file) = arguments.password_file.clone().or_else(superuser_file) else { return Ok(None) };
    let text = read_file(&file)?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}
