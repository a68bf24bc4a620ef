//! Fixture: a small catalog, and a statement context over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{
    CatalogState, Change, Column, Constraint, ConstraintKind, Distribution, ReferentialAction, Role, Schema, Table,
    TableOrder, View,
};
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use types::random::SeededRandom;
use types::{ColumnId, Oid, QueryId, SqlType};

pub(super) const CUSTOMERS: Oid = Oid(16_386);
pub(super) const CUSTOMERS_KEY: Oid = Oid(16_394);
pub(super) const ORDERS: Oid = Oid(16_399);
pub(super) const REGION: Oid = Oid(16_409);
pub(super) const BIG_CUSTOMERS: Oid = Oid(16_414);
const SALES: Oid = Oid(16_385);

fn column(id: i32, name: &str, sql_type: SqlType) -> Column {
    Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    }
}

fn constraint(oid: u32, name: &str, kind: ConstraintKind) -> Constraint {
    Constraint { oid: Oid(oid), name: name.to_owned(), kind, enforced: false, comment: None }
}

fn table(oid: Oid, schema: Oid, name: &str, columns: Vec<Column>, constraints: Vec<Constraint>) -> Table {
    let next_column = i32::try_from(columns.len()).expect("few columns") + 1;
    Table {
        oid,
        schema,
        name: name.to_owned(),
        owner: Role::BOOTSTRAP,
        columns,
        constraints,
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column,
        storage: catalog::Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    }
}

fn customers() -> Table {
    let mut columns = vec![
        column(1, "id", SqlType::Int8),
        column(2, "name", SqlType::Varchar(Some(40))),
        column(3, "email", SqlType::Text),
        column(4, "balance", SqlType::Numeric { precision: 12, scale: 2 }),
        column(5, "born", SqlType::Date),
        column(6, "active", SqlType::Bool),
        column(7, "tags", SqlType::Array(Box::new(SqlType::Text))),
        column(8, "payload", SqlType::Jsonb),
    ];
    columns[0].not_null = true;
    columns[1].not_null = true;
    columns[2].comment = Some("where to write".to_owned());
    columns[3].default = Some("0".to_owned());
    columns[5].default = Some("true".to_owned());
    let constraints = vec![
        constraint(CUSTOMERS_KEY.0, "customers_pkey", ConstraintKind::PrimaryKey { columns: vec![ColumnId(1)] }),
        constraint(16_396, "customers_email_key", ConstraintKind::Unique { columns: vec![ColumnId(3)] }),
        constraint(
            16_398,
            "balance_positive",
            ConstraintKind::Check { expression: "balance >= 0".to_owned(), columns: vec![ColumnId(4)] },
        ),
    ];
    let mut table = table(CUSTOMERS, Schema::PUBLIC, "customers", columns, constraints);
    table.comment = Some("who buys".to_owned());
    table
}

fn key_orders() -> Table {
    let mut columns = vec![
        column(1, "id", SqlType::Int8),
        column(2, "customer", SqlType::Int8),
        column(3, "placed", SqlType::TimestampTz),
        column(4, "note", SqlType::Char(Some(10))),
    ];
    columns[0].not_null = true;
    columns[2].not_null = true;
    columns[2].default = Some("now()".to_owned());
    let reference = ConstraintKind::ForeignKey {
        columns: vec![ColumnId(2)],
        references: CUSTOMERS,
        referenced: vec![ColumnId(1)],
        on_update: ReferentialAction::NoAction,
        on_delete: ReferentialAction::Cascade,
        delete_columns: Vec::new(),
    };
    let constraints = vec![
        constraint(16_402, "orders_pkey", ConstraintKind::PrimaryKey { columns: vec![ColumnId(1)] }),
        constraint(16_404, "orders_customer_fkey", reference),
    ];
    table(ORDERS, Schema::PUBLIC, "orders", columns, constraints)
}

/// Returns a catalog with `customers`, `orders`, `big_customers` and `sales.region`.
pub(super) fn state() -> CatalogState {
    let region = vec![
        column(1, "code", SqlType::Char(Some(2))),
        column(2, "name", SqlType::Text),
        column(3, "area", SqlType::Float8),
    ];
    let view = View {
        oid: BIG_CUSTOMERS,
        schema: Schema::PUBLIC,
        name: "big_customers".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![("id".to_owned(), SqlType::Int8), ("name".to_owned(), SqlType::Varchar(Some(40)))],
        definition: "SELECT id, name FROM customers WHERE balance > 1000".to_owned(),
        depends_on: vec![CUSTOMERS],
        columns_used: vec![(CUSTOMERS, ColumnId(1)), (CUSTOMERS, ColumnId(2)), (CUSTOMERS, ColumnId(4))],
        comment: None,
        column_comments: BTreeMap::new(),
    };
    let sales = Schema { oid: SALES, name: "sales".to_owned(), owner: Role::BOOTSTRAP, comment: None };
    let changes = [
        Change::PutSchema(Arc::new(sales)),
        Change::PutTable(Arc::new(customers())),
        Change::PutTable(Arc::new(key_orders())),
        Change::PutTable(Arc::new(table(REGION, SALES, "region", region, Vec::new()))),
        Change::PutView(Arc::new(view)),
    ];
    changes
        .iter()
        .fold(CatalogState::new_warehouse(), |state, change| state.apply(change).expect("the fixture is sound"))
}

/// Returns the context of a statement of the role `kiln` over [`state`].
pub(super) fn context() -> Arc<StatementContext> {
    let snapshot = Arc::new(state());
    let role = Arc::clone(snapshot.role(Role::BOOTSTRAP).expect("a fresh catalog has its role"));
    Arc::new(StatementContext {
        has_rows: true,
        commit: types::CommitTs(1),
        time_travel: Arc::new(session_context::NoTimeTravel),
        inputs: Arc::default(),
        arguments: Arc::default(),
        assignments: Arc::default(),
        sequences: Arc::new(session_context::NoSequenceNumbers),
        settings: Arc::new(Settings::default()),
        session_role: Arc::clone(&role),
        role,
        snapshot,
        database: "kiln".to_owned(),
        query_id: QueryId(1),
        statement_us: 1_800_000_000_000_000,
        transaction_us: 1_800_000_000_000_000,
        backend_pid: 4_242,
        new_oid: Arc::new(|| Oid(20_000)),
        activity: Arc::new(NoActivity),
        random: Arc::new(SeededRandom::new(1)),
        clock: Arc::new(types::SystemClock::new()),
    })
}
