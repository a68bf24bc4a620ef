//! Connection of an authenticated client: reads messages, keeps the state of the protocol, sends results and errors.

use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, SecretKey};
use pgwire::tokio::server::MaybeTls;
use session::backends::Backend;
use session::bind::{Target, violation};
use session::block_status::BlockStatus;
use session::hang_up::HangUp;
use session::instance::Instance;
use session::interrupt::terminated;
use session::notice::Severity;
use session::result_sink::ResultSink;
use session::{Place, Session};
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError, SqlResult};

use crate::client::Client;
use crate::frontend::{Decoded, Frontend};
use crate::parameters::Reported;
use crate::rows::row_description;
use crate::startup::Opened;
use crate::transport::{Inbox, Outbox};

/// Connection of an authenticated client.
pub(crate) struct Connection {
    instance: Arc<Instance>,
    backend: Arc<Backend>,
    session: Session,
    client: Client,
    /// Settings that were last reported to the client.
    reported: Reported,
    /// True after a failed message of the extended protocol: all messages are skipped up to the next Sync.
    skipping: bool,
}

/// Next action after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Read further messages of the batch; no ReadyForQuery is due.
    Listen,
    /// Send ReadyForQuery.
    Ready,
    /// Close the connection.
    Close,
}

impl Connection {
    /// Buffers the end of authentication: AuthenticationOk, the reported settings and the key for CancelRequest.
    pub(crate) fn new(instance: Arc<Instance>, opened: Opened, mut session: Session) -> Self {
        let backend = Arc::clone(session.backend());
        session.hung_up = Arc::new(hang_up_of(&opened.stream));
        let (read_half, write_half) = tokio::io::split(opened.stream);
        let metrics = Arc::clone(&instance.metrics);
        let mut outbox = Outbox::new(write_half, Arc::clone(&metrics), Arc::clone(&backend.client_wait));
        outbox.put(PgWireBackendMessage::Authentication(Authentication::Ok));
        let secret = SecretKey::Bytes(backend.secret.clone());
        let mut reported = Reported::default();
        reported.report(&session, &mut outbox);
        outbox.put(PgWireBackendMessage::BackendKeyData(BackendKeyData::new(backend.pid, secret)));
        let inbox = Inbox::new(read_half, opened.read, metrics);
        Self { instance, backend, session, client: Client { inbox, outbox }, reported, skipping: false }
    }

    /// Serves the client until it leaves or its connection is terminated.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut next = Next::Ready;
        let mut told = false;
        while next != Next::Close {
            if next == Next::Ready && self.ready().await.is_err() {
                break;
            }
            // Between the messages of a batch the session is not idle: the batch ends with Sync.
            let idle = next == Next::Ready;
            let read = if idle { None } else { self.client.inbox.next_read() };
            let listened = match read {
                Some(decoded) => {
                    // Lets other connections run, however many messages have arrived.
                    tokio::task::consume_budget().await;
                    decoded.map(Some)
                }
                None => self.listen(&shutdown, idle).await,
            };
            next = match listened {
                Ok(Some(decoded)) => match self.answer_at_once(&decoded) {
                    Some(Ok(next)) if !self.client.outbox.is_full() => next,
                    answered => self.handle(decoded, answered).await,
                },
                Ok(None) => Next::Close,
                Err(fatal) => {
                    self.client.error(Severity::Fatal, &fatal, None);
                    told = true;
                    Next::Close
                }
            };
            if self.backend.interrupt.termination().is_cancelled() && !told {
                self.client.error(Severity::Fatal, &terminated(), None);
                next = Next::Close;
            }
        }
        self.session.abandon();
        self.session.drop_temporary().await;
        tokio::select! {
            // The client may be gone or not reading: errors do not matter now.
            _ = self.client.outbox.close() => {}
            () = self.instance.clock.sleep(GOODBYE_MAX) => {}
        }
    }

    /// Sends ReadyForQuery, preceded by notices and changed settings.
    async fn ready(&mut self) -> std::io::Result<()> {
        self.tell_notices();
        self.reported.report(&self.session, &mut self.client.outbox);
        let status = self.session.status();
        self.backend.rest(status, self.instance.clock.now_us());
        self.client.put(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(transaction_status(status))));
        // Sessions that are ready run first: their clients, on this machine or behind one adapter, then wake once for
        // many results.
        tokio::task::yield_now().await;
        self.client.outbox.flush().await
    }

    /// Waits for the next message; `None` once the client is gone. An error ends the connection.
    async fn listen(&mut self, shutdown: &CancellationToken, idle: bool) -> SqlResult<Option<Decoded>> {
        let timeout = self.session.idle_timeout();
        let clock = &self.instance.clock;
        let idle_for_long = async {
            match timeout {
                Some((limit, error)) => {
                    clock.sleep(limit).await;
                    error
                }
                None => std::future::pending().await,
            }
        };
        let mut idle_for_long = pin!(idle_for_long);
        loop {
            let left = self.session.snapshot_left();
            let seen_for_long = async {
                match left {
                    Some(left) => clock.sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if idle => return Err(terminated()),
                () = self.backend.interrupt.termination().cancelled() => return Err(terminated()),
                decoded = self.client.inbox.next() => return decoded.transpose(),
                error = &mut idle_for_long => return Err(error),
                () = seen_for_long => self.session.let_go_of_old(),
            }
        }
    }

    /// Handles a message, unless the fast path has `answered` it, and sends its error if it failed.
    async fn handle(&mut self, decoded: Decoded, answered: Option<SqlResult<Next>>) -> Next {
        let extended = b"PBDECH".contains(&decoded.kind);
        if self.skips(&decoded) {
            return Next::Listen;
        }
        let result = match (answered, decoded.message) {
            (Some(answered), _) => answered,
            (None, Ok(message)) => self.answer(message).await,
            (None, Err(error)) => Err(error),
        };
        match result {
            Ok(next) => {
                self.session.take_query_id();
                if self.client.outbox.flush_if_full().await.is_ok() { next } else { Next::Close }
            }
            // `run` sends this error as the fatal one.
            Err(error) if self.is_terminated_by(&error) => {
                self.session.fail();
                Next::Close
            }
            Err(error) => {
                self.session.fail();
                self.tell_notices();
                let query_id = self.session.take_query_id();
                self.client.error(Severity::Error, &error, query_id);
                self.skipping = extended;
                if !extended {
                    return Next::Ready;
                }
                // Drivers that use Flush wait for the error before they send Sync.
                if self.client.outbox.flush().await.is_ok() { Next::Listen } else { Next::Close }
            }
        }
    }

    /// Whether a statement failed because the connection was terminated.
    fn is_terminated_by(&self, error: &SqlError) -> bool {
        error.condition == Condition::AdminShutdown && self.backend.interrupt.termination().is_cancelled()
    }

    /// Whether a message is skipped because an earlier one of its batch failed.
    fn skips(&self, decoded: &Decoded) -> bool {
        self.skipping && !matches!(decoded.kind, b'S' | b'X')
    }

    /// Handles a message that needs no waiting; `None`, without any effect, if it may need to wait. Most messages of
    /// drivers are handled here, without the large future of [`Self::answer`].
    fn answer_at_once(&mut self, decoded: &Decoded) -> Option<SqlResult<Next>> {
        if self.skips(decoded) {
            return None;
        }
        let answer = match decoded.message.as_ref().ok()? {
            Frontend::Bind(bind) => {
                let bound = self.session.bind_at_once(bind)?;
                Some(bound.map(|()| {
                    self.client.put(PgWireBackendMessage::BindComplete(BindComplete::new()));
                    Next::Listen
                }))
            }
            Frontend::Execute { portal, rows_max: 0 } => {
                let ran = self.session.execute_at_once(portal, &mut self.client)?;
                Some(ran.map(|()| Next::Listen))
            }
            Frontend::Sync => self.session.sync_at_once().then(|| {
                self.skipping = false;
                Ok(Next::Ready)
            }),
            _ => None,
        };
        if matches!(answer, Some(Ok(_))) {
            self.session.take_query_id();
        }
        answer
    }

    /// Handles any message.
    async fn answer(&mut self, message: Frontend) -> SqlResult<Next> {
        match message {
            Frontend::Query(sql) => {
                Box::pin(self.query(&Arc::new(sql))).await?;
                return Ok(Next::Ready);
            }
            Frontend::Parse { name, sql, parameter_types } => {
                Box::pin(self.session.prepare(&name, &Arc::new(sql), &parameter_types)).await?;
                self.client.put(PgWireBackendMessage::ParseComplete(ParseComplete::new()));
            }
            Frontend::Bind(bind) => {
                Box::pin(self.session.bind(&bind)).await?;
                self.client.put(PgWireBackendMessage::BindComplete(BindComplete::new()));
            }
            Frontend::Describe(target) => self.describe(&target)?,
            Frontend::Execute { portal, rows_max } => {
                let rows_max = u64::try_from(rows_max).ok().filter(|rows_max| *rows_max > 0);
                self.session.execute_portal(&portal, rows_max, &mut self.client).await?;
                self.tell_notices();
            }
            Frontend::Close(target) => {
                self.session.close(&target);
                self.client.put(PgWireBackendMessage::CloseComplete(CloseComplete::new()));
            }
            Frontend::Flush => {
                self.client.outbox.flush().await.map_err(crate::client::lost)?;
            }
            Frontend::Sync => {
                self.skipping = false;
                Box::pin(self.session.sync()).await?;
                return Ok(Next::Ready);
            }
            // Data of a COPY that has failed: the client has not noticed yet.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::Terminate => return Ok(Next::Close),
            Frontend::Password(_) => return Err(violation("unexpected password message")),
        }
        Ok(Next::Listen)
    }

    /// Runs a simple query: the statements of the string one after the other, each with its results sent before the
    /// next begins.
    async fn query(&mut self, sql: &Arc<String>) -> SqlResult<()> {
        let statements = self.session.parse(sql).await?;
        if statements.is_empty() {
            self.client.put(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
            return self.session.sync().await;
        }
        // A simple query ends the unnamed statement and the unnamed portal.
        self.session.close(&Target::Statement(String::new()));
        self.session.close(&Target::Portal(String::new()));
        let count = statements.len();
        for (index, parsed) in statements.iter().enumerate() {
            let place = Place { last: index + 1 == count, alone: count == 1 };
            // Lets other connections run, however many statements the string has.
            tokio::task::consume_budget().await;
            self.session.run(parsed, place, &mut self.client).await?;
            self.tell_notices();
        }
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> SqlResult<()> {
        let (columns, formats) = match target {
            Target::Statement(name) => {
                let described = self.session.describe_statement(name)?;
                let types = described.parameters.iter().map(types::SqlType::oid).collect();
                self.client.put(PgWireBackendMessage::ParameterDescription(ParameterDescription::new(types)));
                // The formats of a statement's result are not known before Bind; PostgreSQL reports text here.
                (described.columns, None)
            }
            Target::Portal(name) => {
                let (columns, formats) = self.session.describe_portal(name)?;
                (columns, Some(formats))
            }
        };
        self.client.put(match columns {
            Some(columns) => {
                let formats = formats.unwrap_or_else(|| vec![value_codec::encode::Format::Text; columns.len()]);
                PgWireBackendMessage::RowDescription(row_description(&columns, &formats))
            }
            None => PgWireBackendMessage::NoData(NoData::new()),
        });
        Ok(())
    }

    fn tell_notices(&mut self) {
        for (severity, notice) in self.session.take_notices() {
            self.client.notice(severity, &notice);
        }
    }
}

/// Time to send the last messages to a client that may not read, before its connection is dropped.
const GOODBYE_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// Converts the transaction status to that of ReadyForQuery.
fn transaction_status(status: BlockStatus) -> TransactionStatus {
    match status {
        BlockStatus::Idle => TransactionStatus::Idle,
        BlockStatus::Open => TransactionStatus::Transaction,
        BlockStatus::Failed => TransactionStatus::Error,
    }
}

fn hang_up_of(stream: &MaybeTls) -> HangUp {
    match stream {
        MaybeTls::Plain(socket) => HangUp::of(socket.as_fd()),
        MaybeTls::Tls(socket) => HangUp::of(socket.get_ref().0.as_fd()),
        _ => HangUp::default(),
    }
}
