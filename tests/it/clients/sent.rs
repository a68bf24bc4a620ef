//! Captured catalog queries of clients and tools, sent when they connect and browse: all are answered, with the same
//! columns as by PostgreSQL.

use std::collections::BTreeMap;

use tokio_postgres::{Client, SimpleQueryMessage};

use super::root;
use crate::postgres::Postgres;
use crate::server::Server;

/// Relations that the captured queries refer to by OID.
const RELATIONS: &str = "
    DROP TABLE IF EXISTS public.customers CASCADE; DROP TABLE IF EXISTS public.orders; DROP SCHEMA IF EXISTS sales CASCADE;
    CREATE TABLE public.customers (id bigint PRIMARY KEY, name varchar(40) NOT NULL, email text CONSTRAINT customers_email_key UNIQUE,
        balance numeric(12,2) DEFAULT 0, born date, active boolean DEFAULT true, tags text[], payload jsonb,
        CONSTRAINT balance_positive CHECK (balance >= 0));
    CREATE TABLE public.orders (id bigint PRIMARY KEY, placed timestamptz NOT NULL DEFAULT now(), note char(10),
        customer bigint REFERENCES public.customers (id) ON DELETE CASCADE);
    CREATE VIEW public.big_customers AS SELECT id, name FROM public.customers WHERE balance > 1000;
    CREATE SCHEMA sales; CREATE TABLE sales.region (code char(2), name text, area double precision);
    COMMENT ON TABLE public.customers IS 'who buys'";

#[tokio::test(flavor = "multi_thread")]
async fn captured_queries_are_answered() {
    let server = Server::start();
    let ours = server.connect().await;
    let relations = prepare(&ours).await;
    let postgres = Postgres::start();
    let theirs = match &postgres {
        Some(postgres) => {
            let client = postgres.connect().await;
            let relations = prepare(&client).await;
            Some((client, relations))
        }
        None => None,
    };
    let mut failures = Vec::new();
    for (tool, query) in queries() {
        let expected = match &theirs {
            Some((client, relations)) => match columns(client, &with_relations(&query, relations)).await {
                Ok(columns) => Some(columns),
                // The query is for another version, or fails on purpose.
                Err(_) => continue,
            },
            None => None,
        };
        let first_line = query.lines().take(3).collect::<Vec<_>>().join(" ");
        match columns(&ours, &with_relations(&query, &relations)).await {
            Err(error) => failures.push(format!("{tool}: {error}\n    {first_line}")),
            Ok(found) => {
                if let Some(expected) = expected.filter(|expected| *expected != found) {
                    failures.push(format!("{tool}: columns {found:?}, PostgreSQL has {expected:?}\n    {first_line}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} queries fail:\n{}", failures.len(), failures.join("\n"));
}

/// Creates the relations; returns their OIDs by name.
async fn prepare(client: &Client) -> BTreeMap<String, String> {
    client.batch_execute(RELATIONS).await.expect("the relations are made");
    let mut numbers = BTreeMap::new();
    for name in ["customers", "customers_pkey", "orders", "big_customers", "region"] {
        let row = client.simple_query(&format!("SELECT oid FROM pg_class WHERE relname = '{name}'")).await;
        let number = row.expect("pg_class answers").into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        numbers.insert(name.to_owned(), number.unwrap_or_else(|| "0".to_owned()));
    }
    numbers
}

/// Returns the column names of the answer.
async fn columns(client: &Client, query: &str) -> Result<Vec<String>, String> {
    let messages = client.simple_query(query).await.map_err(|error| match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    })?;
    Ok(messages
        .iter()
        .find_map(|message| match message {
            SimpleQueryMessage::RowDescription(columns) => {
                Some(columns.iter().map(|column| column.name().to_owned()).collect())
            }
            _ => None,
        })
        .unwrap_or_default())
}

/// Returns the captured queries, each with the name of its client.
fn queries() -> Vec<(String, String)> {
    let folder = root().join("crates/sql/system_catalog/src/tests/clients");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the captured queries are there").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a file of queries");
        let tool = entry.path().file_stem().expect("files have names").to_string_lossy().into_owned();
        for block in text.split(";\n\n") {
            let parameters = block.lines().find_map(|line| line.strip_prefix("-- parameters: ")).unwrap_or_default();
            let lines = block.lines().filter(|line| !line.trim_start().starts_with("--"));
            let query = lines.collect::<Vec<_>>().join("\n").trim().trim_end_matches(';').to_owned();
            if !query.is_empty() {
                found.push((tool.clone(), with_parameters(query, parameters)));
            }
        }
    }
    found
}

/// Substitutes parameters, given as `$1 = 'a', $2 = NULL`.
fn with_parameters(mut query: String, parameters: &str) -> String {
    let mut rest = parameters;
    for number in 1..10 {
        let Some(after) = rest.trim_start_matches(", ").strip_prefix(&format!("${number} = ")) else { break };
        let end = match after.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').map_or(after.len(), |end| end + 2),
            None => after.find(',').unwrap_or(after.len()),
        };
        query = query.replace(&format!("${number}"), &after[..end]);
        rest = &after[end..];
    }
    query
}

fn with_relations(query: &str, relations: &BTreeMap<String, String>) -> String {
    // Longest name first: one may be a prefix of another.
    let mut names: Vec<_> = relations.iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names.into_iter().fold(query.to_owned(), |query, (name, number)| query.replace(&format!(":{name}"), number))
}
