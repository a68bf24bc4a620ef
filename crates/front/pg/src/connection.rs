//! One client from authentication to goodbye: messages in, the protocol's state, errors out.

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

/// A client that is in.
pub(crate) struct Connection {
    instance: Arc<Instance>,
    backend: Arc<Backend>,
    session: Session,
    client: Client,
    reported: Reported,
    /// An extended-protocol message failed: everything is passed over up to the next Sync.
    skipping: bool,
}

/// What follows a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Further messages of the batch; no answer is due.
    Listen,
    /// ReadyForQuery.
    Ready,
    /// The client said goodbye.
    Close,
}

impl Connection {
    /// Tells an authenticated client that it is in, and everything it wants to know beforehand.
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

    /// Serves until the client leaves, or is made to.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut next = Next::Ready;
        let mut told = false;
        while next != Next::Close {
            if next == Next::Ready && self.ready().await.is_err() {
                break;
            }
            // Between the messages of one extended query a session is not idle: its answer ends with Sync.
            let idle = next == Next::Ready;
            let read = if idle { None } else { self.client.inbox.next_read() };
            let listened = match read {
                Some(decoded) => {
                    // However many messages have come at once, others get their turn.
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
            // The client may be gone, or not reading: nothing that it says matters now.
            _ = self.client.outbox.close() => {}
            () = self.instance.clock.sleep(GOODBYE_MAX) => {}
        }
    }

    /// ReadyForQuery, after the settings that have changed.
    async fn ready(&mut self) -> std::io::Result<()> {
        self.tell_notices();
        self.reported.report(&self.session, &mut self.client.outbox);
        let status = self.session.status();
        self.backend.rest(status, self.instance.clock.now_us());
        self.client.put(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(transaction_status(status))));
        // Sessions that can go on do so first: clients on this machine, or behind one adapter, then get up once for many answers.
        tokio::task::yield_now().await;
        self.client.outbox.flush().await
    }

    /// The next message; `None` once the client is gone.
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

    /// Answers a message, unless it was `answered` at once, and tells the client how that went.
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
            // It is told that as what ends the connection.
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
                // Drivers that asked with Flush wait for the error before they send Sync.
                if self.client.outbox.flush().await.is_ok() { Next::Listen } else { Next::Close }
            }
        }
    }

    /// Whether a statement failed because the connection is to end.
    fn is_terminated_by(&self, error: &SqlError) -> bool {
        error.condition == Condition::AdminShutdown && self.backend.interrupt.termination().is_cancelled()
    }

    /// Whether a message is passed over because an earlier one of its batch failed.
    fn skips(&self, decoded: &Decoded) -> bool {
        self.skipping && !matches!(decoded.kind, b'S' | b'X')
    }

    /// The answer to what needs no waiting; `None` where it may, and nothing has happened. Most of what drivers send is
    /// answered here, without the future of all else that there is.
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
            // The rest of a COPY that failed: its sender has not noticed yet.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::Terminate => return Ok(Next::Close),
            Frontend::Password(_) => return Err(violation("a password was sent, but none was asked for")),
        }
        Ok(Next::Listen)
    }

    /// The simple protocol: the statements of a string one after the other, each answered before the next begins.
    async fn query(&mut self, sql: &Arc<String>) -> SqlResult<()> {
        let statements = self.session.parse(sql).await?;
        if statements.is_empty() {
            self.client.put(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
            return self.session.sync().await;
        }
        // The unnamed statement and portal do not outlive a simple query.
        self.session.close(&Target::Statement(String::new()));
        self.session.close(&Target::Portal(String::new()));
        let count = statements.len();
        for (index, parsed) in statements.iter().enumerate() {
            let place = Place { last: index + 1 == count, alone: count == 1 };
            // However many statements a string has, others get their turn.
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
                // How a statement's result will be sent is not known before it is bound: text, says PostgreSQL.
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

/// What a client that does not read gets before its connection is dropped.
const GOODBYE_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// The status byte of ReadyForQuery.
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
