//! Creates the nine tables of clause 1.3.

use super::TpccOptions;
use crate::Error;
use crate::measure::server_connection::{Server, run_statements};

/// Table names in loading order.
pub(super) const TABLES: [&str; 9] =
    ["item", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock"];

pub(super) async fn create(server: &Server, options: &TpccOptions, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let client = server.connect().await?;
    for table in TABLES {
        run_statements(&client, "dropping the tables", &format!("DROP TABLE IF EXISTS {table} CASCADE")).await?;
    }
    let storage = server.storage_clause(options.storage);
    for columns in TABLE_DEFINITIONS {
        run_statements(&client, "creating the tables", &format!("CREATE TABLE {columns}{storage}")).await?;
    }
    for index in INDEXES {
        if let Err(error) = client.batch_execute(index).await {
            // A server without secondary indexes is slower but still correct.
            say(&format!("{index}: {}", error.as_db_error().map_or("failed", |told| told.message())));
        }
    }
    Ok(())
}

/// Table definitions: name, columns and key.
const TABLE_DEFINITIONS: [&str; 9] = [
    "item (i_id integer PRIMARY KEY, i_im_id integer, i_name varchar(24), i_price numeric(5,2), i_data varchar(50))",
    "warehouse (w_id integer PRIMARY KEY, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
     w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2))",
    "district (d_w_id integer, d_id integer, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), \
     d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id integer, \
     PRIMARY KEY (d_w_id, d_id))",
    "customer (c_w_id integer, c_d_id integer, c_id integer, c_first varchar(16), c_middle char(2), c_last varchar(16), \
     c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), \
     c_since timestamp, c_credit char(2), c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), \
     c_ytd_payment numeric(12,2), c_payment_cnt integer, c_delivery_cnt integer, c_data varchar(500), \
     PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "history (h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, h_w_id integer, h_date timestamp, \
     h_amount numeric(6,2), h_data varchar(24))",
    "orders (o_w_id integer, o_d_id integer, o_id integer, o_c_id integer, o_entry_d timestamp, o_carrier_id integer, \
     o_ol_cnt integer, o_all_local integer, PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "new_order (no_w_id integer, no_d_id integer, no_o_id integer, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "order_line (ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer, ol_i_id integer, ol_supply_w_id integer, \
     ol_delivery_d timestamp, ol_quantity integer, ol_amount numeric(6,2), ol_dist_info char(24), \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "stock (s_w_id integer, s_i_id integer, s_quantity integer, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
     s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), \
     s_dist_10 char(24), s_ytd integer, s_order_cnt integer, s_remote_cnt integer, s_data varchar(50), \
     PRIMARY KEY (s_w_id, s_i_id))",
];

/// Indexes on customers by name and on orders by customer.
const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];
