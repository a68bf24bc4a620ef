import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** pgjdbc as an application and as a tool use it; the argument is the URL. */
public final class JdbcClient {
    private interface Body {
        void run() throws Exception;
    }

    private static Connection connection;

    public static void main(String[] arguments) throws Exception {
        connection = DriverManager.getConnection(arguments[0]);
        execute("DROP SCHEMA IF EXISTS jdbc_client CASCADE");
        execute("CREATE SCHEMA jdbc_client");
        execute("SET search_path = jdbc_client, public");
        part("types", JdbcClient::types);
        part("batches", JdbcClient::batches);
        part("copies", JdbcClient::copies);
        part("transactions", JdbcClient::transactions);
        part("fetchSize", JdbcClient::fetchSize);
        part("errors", JdbcClient::errors);
        part("metadata", JdbcClient::metadata);
        execute("DROP SCHEMA jdbc_client CASCADE");
        connection.close();
        System.out.println("done");
    }

    private static void part(String name, Body body) throws Exception {
        body.run();
        System.out.println(name);
    }

    private static void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private static Object value(String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            check(rows.next(), sql);
            return rows.getObject(1);
        }
    }

    private static void check(boolean holds, Object about) {
        if (!holds) {
            throw new AssertionError(about);
        }
    }

    private static void same(Object expected, Object found) {
        check(expected == null ? found == null : expected.equals(found), "expected " + expected + ", found " + found);
    }

    private static SQLException fails(String state, Body body) throws Exception {
        try {
            body.run();
        } catch (SQLException error) {
            same(state, error.getSQLState());
            return error;
        }
        throw new AssertionError("expected " + state);
    }

    /** Sends each value seven times, so that the driver changes to prepared statements and binary values on the way. */
    private static void types() throws Exception {
        Object[][] cases = {
            {"boolean", true}, {"smallint", 7}, {"integer", -7}, {"bigint", Long.MIN_VALUE},
            {"numeric(20,4)", new BigDecimal("1234567890123456.7891")}, {"real", 1.5f}, {"double precision", -1e300},
            {"text", "naïve ☃"}, {"varchar(10)", "ten"}, {"uuid", UUID.fromString("12345678-1234-5678-1234-567812345678")},
            {"date", LocalDate.of(2024, 2, 29)}, {"time", LocalTime.of(1, 2, 3)},
            {"timestamp", LocalDateTime.of(1999, 12, 31, 23, 59, 59, 1000)},
            {"timestamptz", OffsetDateTime.of(2024, 6, 1, 12, 0, 0, 0, ZoneOffset.UTC)},
        };
        for (Object[] one : cases) {
            try (PreparedStatement statement = connection.prepareStatement("SELECT ?::" + one[0] + ", ?::" + one[0])) {
                for (int round = 0; round < 7; round++) {
                    statement.setObject(1, one[1]);
                    statement.setNull(2, Types.NULL);
                    try (ResultSet rows = statement.executeQuery()) {
                        check(rows.next(), one[0]);
                        same(one[1], one[1] instanceof Integer ? (Object) rows.getInt(1) : rows.getObject(1, one[1].getClass()));
                        same(null, rows.getObject(2));
                    }
                }
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT ?::bytea, ?::integer[], ?::text[]")) {
            for (int round = 0; round < 7; round++) {
                statement.setBytes(1, new byte[] {0, -1, 39, 92});
                statement.setArray(2, connection.createArrayOf("integer", new Integer[] {1, null, 3}));
                statement.setArray(3, connection.createArrayOf("text", new String[] {"a,b", "\"", null}));
                try (ResultSet rows = statement.executeQuery()) {
                    check(rows.next(), "arrays");
                    check(Arrays.equals(new byte[] {0, -1, 39, 92}, rows.getBytes(1)), "bytea");
                    check(Arrays.equals(new Integer[] {1, null, 3}, (Object[]) rows.getArray(2).getArray()), "integer[]");
                    check(Arrays.equals(new String[] {"a,b", "\"", null}, (Object[]) rows.getArray(3).getArray()), "text[]");
                }
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT 1 WHERE 'a' = ? AND 1 < ?")) {
            ParameterMetaData parameters = statement.getParameterMetaData();
            same("text", parameters.getParameterTypeName(1));
            same("int4", parameters.getParameterTypeName(2));
        }
    }

    private static void batches() throws Exception {
        execute("CREATE TABLE items (id integer PRIMARY KEY, name varchar(30) NOT NULL, price numeric(10,2) DEFAULT 1.5, made date)");
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO items (id, name, made) VALUES (?, ?, ?)")) {
            for (int id = 0; id < 100; id++) {
                statement.setInt(1, id);
                statement.setString(2, "item " + id);
                statement.setDate(3, Date.valueOf("2024-01-01"));
                statement.addBatch();
            }
            same(100, statement.executeBatch().length);
        }
        same(100L, value("SELECT count(*) FROM items WHERE price = 1.50"));
        try (PreparedStatement statement = connection.prepareStatement("SELECT id, name FROM items WHERE id = ANY (?) ORDER BY id")) {
            Array wanted = connection.createArrayOf("integer", new Integer[] {3, 5});
            statement.setArray(1, wanted);
            ResultSet rows = statement.executeQuery();
            check(rows.next() && rows.getInt("id") == 3 && rows.next() && rows.getString("name").equals("item 5"), "rows");
            ResultSetMetaData columns = rows.getMetaData();
            same("varchar", columns.getColumnTypeName(2));
            same(30, columns.getPrecision(2));
            same("items", columns.getTableName(2));
            same(ResultSetMetaData.columnNoNulls, columns.isNullable(2));
        }
    }

    private static void copies() throws Exception {
        CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
        execute("CREATE TABLE copied (n bigint, t text)");
        StringBuilder data = new StringBuilder();
        for (int n = 0; n < 20000; n++) {
            data.append(n).append(",row ").append(n).append('\n');
        }
        same(20000L, copies.copyIn("COPY copied FROM STDIN (FORMAT csv)", new StringReader(data.toString())));
        StringWriter out = new StringWriter();
        same(3L, copies.copyOut("COPY (SELECT * FROM copied WHERE n < 3 ORDER BY n) TO STDOUT (FORMAT csv, HEADER)", out));
        same("n,t\n0,row 0\n1,row 1\n2,row 2\n", out.toString());
        fails("22P02", () -> copies.copyIn("COPY copied FROM STDIN (FORMAT csv)", new StringReader("x,y\n")));
        same(20000L, value("SELECT count(*) FROM copied"));
    }

    private static void transactions() throws Exception {
        execute("CREATE TABLE kept (n integer)");
        connection.setAutoCommit(false);
        execute("INSERT INTO kept VALUES (1)");
        connection.rollback();
        execute("INSERT INTO kept VALUES (2)");
        connection.commit();
        same(1L, value("SELECT count(*) FROM kept"));
        fails("22012", () -> value("SELECT 1 / 0"));
        fails("25P02", () -> value("SELECT 1"));
        connection.rollback();
        connection.setReadOnly(true);
        fails("25006", () -> execute("INSERT INTO kept VALUES (3)"));
        connection.rollback();
        connection.setReadOnly(false);
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        same(1L, value("SELECT count(*) FROM kept"));
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
    }

    private static void fetchSize() throws Exception {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement(); Statement second = connection.createStatement()) {
            statement.setFetchSize(100);
            second.setFetchSize(7);
            ResultSet rows = statement.executeQuery("SELECT n FROM copied ORDER BY n");
            ResultSet others = second.executeQuery("SELECT n FROM copied ORDER BY n DESC");
            for (long n = 0; n < 1000; n++) {
                check(rows.next() && rows.getLong(1) == n, n);
                check(others.next() && others.getLong(1) == 19999 - n, n);
            }
            statement.setMaxRows(10);
            ResultSet few = statement.executeQuery("SELECT n FROM copied");
            int count = 0;
            while (few.next()) {
                count++;
            }
            same(10, count);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private static void errors() throws Exception {
        fails("42P01", () -> value("SELECT * FROM missing"));
        fails("42601", () -> value("SELEC 1"));
        fails("23502", () -> execute("INSERT INTO items (id) VALUES (1000)"));
        fails("22001", () -> execute("INSERT INTO items (id, name) VALUES (1000, repeat('x', 31))"));
        String endless = "SELECT count(*) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b";
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            fails("57014", () -> statement.executeQuery(endless));
        }
        try (Statement statement = connection.createStatement()) {
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            canceller.start();
            fails("57014", () -> statement.executeQuery(endless));
            canceller.join();
        }
        same(1, value("SELECT 1"));
    }

    private static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (rows.next()) {
            values.add(rows.getString(name));
        }
        return values;
    }

    private static void metadata() throws Exception {
        execute("CREATE TABLE lines (item integer REFERENCES items (id), line integer, note text DEFAULT 'none', PRIMARY KEY (item, line))");
        execute("CREATE VIEW cheap AS SELECT id, name FROM items WHERE price < 2");
        execute("COMMENT ON TABLE lines IS 'of an order'");
        DatabaseMetaData metadata = connection.getMetaData();
        same("PostgreSQL", metadata.getDatabaseProductName());
        check(column(metadata.getSchemas(), "TABLE_SCHEM").contains("jdbc_client"), "schemas");
        check(column(metadata.getCatalogs(), "TABLE_CAT").contains(connection.getCatalog()), "catalogs");
        same(List.of("copied", "items", "kept", "lines"), column(metadata.getTables(null, "jdbc_client", "%", new String[] {"TABLE"}), "TABLE_NAME"));
        same(List.of("cheap"), column(metadata.getTables(null, "jdbc_client", null, new String[] {"VIEW"}), "TABLE_NAME"));
        same(List.of("of an order"), column(metadata.getTables(null, "jdbc_client", "lines", null), "REMARKS").subList(0, 1));
        ResultSet columns = metadata.getColumns(null, "jdbc_client", "items", null);
        List<String> described = new ArrayList<>();
        while (columns.next()) {
            described.add(String.join(" ", columns.getString("COLUMN_NAME"), columns.getString("TYPE_NAME"),
                columns.getString("COLUMN_SIZE"), columns.getString("DECIMAL_DIGITS"), columns.getString("IS_NULLABLE")));
        }
        same(List.of("id int4 10 0 NO", "name varchar 30 0 NO", "price numeric 10 2 YES", "made date 13 0 YES"), described);
        same(List.of("item", "line"), column(metadata.getPrimaryKeys(null, "jdbc_client", "lines"), "COLUMN_NAME"));
        same(List.of("items"), column(metadata.getImportedKeys(null, "jdbc_client", "lines"), "PKTABLE_NAME"));
        same(List.of("lines"), column(metadata.getExportedKeys(null, "jdbc_client", "items"), "FKTABLE_NAME"));
        same(List.of("items_pkey"), column(metadata.getIndexInfo(null, "jdbc_client", "items", true, false), "INDEX_NAME"));
        check(new TreeSet<>(column(metadata.getTypeInfo(), "TYPE_NAME")).containsAll(List.of("int4", "numeric", "jsonb", "uuid")), "types");
        same(List.of("item", "line"), column(metadata.getBestRowIdentifier(null, "jdbc_client", "lines", 0, false), "COLUMN_NAME"));
        metadata.getFunctions(null, "pg_catalog", "upper").close();
        metadata.getProcedures(null, "jdbc_client", "%").close();
        metadata.getTablePrivileges(null, "jdbc_client", "%").close();
        metadata.getColumnPrivileges(null, "jdbc_client", "items", "%").close();
        metadata.getTableTypes().close();
        metadata.getUDTs(null, "jdbc_client", "%", null).close();
        metadata.getClientInfoProperties().close();
        check(metadata.getMaxColumnNameLength() == 63 && metadata.getSQLKeywords().length() > 100, "limits");
        check(metadata.getUserName().equals("kiln"), metadata.getUserName());
    }
}
