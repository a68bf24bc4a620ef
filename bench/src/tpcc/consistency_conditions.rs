//! The twelve consistency conditions of clause 3.3.2, each as a query that returns violations.

use tokio_postgres::Client;

use crate::Error;

/// Checks all conditions and returns the violated ones as text.
///
/// `fresh` means that nothing was delivered since loading: only then does condition 11 hold as the specification
/// words it.
pub(super) async fn check_conditions(client: &Client, fresh: bool) -> Result<Vec<String>, Error> {
    let mut violations = Vec::new();
    for (number, query) in (1..).zip(CONDITIONS) {
        let query = if number == 11 && fresh { CONDITION_11_LOADED } else { query };
        let counted = client.query_one(&format!("SELECT count(*) FROM ({query}) AS broken"), &[]).await;
        let counted =
            counted.map_err(|source| Error::Server { action: format!("consistency condition {number}"), source })?;
        let count: i64 = counted.get(0);
        if count > 0 {
            violations.push(format!("consistency condition {number} is broken {count} times"));
        }
    }
    Ok(violations)
}

/// Condition 11 in the specification's wording.
const CONDITION_11_LOADED: &str = "SELECT d_w_id, d_id FROM district \
     LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS orders FROM orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id \
     LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS news FROM new_order GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id \
     WHERE coalesce(orders, 0) - coalesce(news, 0) <> 2100";

const CONDITIONS: [&str; 12] = [
    // A warehouse's year-to-date amount is the sum of its districts'.
    "SELECT w_id FROM warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS took FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id \
     WHERE w_ytd <> coalesce(took, 0)",
    // The next order number follows the last order, which is also the newest undelivered one if there are any.
    "SELECT d_w_id, d_id FROM district \
     LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id \
     LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id) AS n \
     ON no_w_id = d_w_id AND no_d_id = d_id \
     WHERE d_next_o_id - 1 <> last OR d_next_o_id - 1 <> newest",
    // Numbers of undelivered orders have no gaps.
    "SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    // A district has as many order lines as its orders' line counts say.
    "SELECT o_w_id, o_d_id FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS told FROM orders GROUP BY o_w_id, o_d_id) AS o \
     LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id) AS l \
     ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE told <> coalesce(lines, 0)",
    // An order has no carrier if and only if it is in `new_order`.
    "SELECT o_id FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
     WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    // An order has as many lines as its line count says.
    "SELECT o_id FROM orders \
     LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l \
     ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt <> coalesce(lines, 0)",
    // An order line has a delivery date if and only if its order has a carrier.
    "SELECT ol_number FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
     WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    // A warehouse's year-to-date amount is the sum of payments in `history`.
    "SELECT w_id FROM warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id \
     WHERE w_ytd <> coalesce(paid, 0)",
    // A district's year-to-date amount is the sum of payments in `history`.
    "SELECT d_id FROM district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h \
     ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> coalesce(paid, 0)",
    // A customer's balance is the amount of delivered lines minus payments.
    "SELECT c_id FROM customer \
     LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS bought FROM orders \
     JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
     WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS b ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
     LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
     ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
     WHERE c_balance <> coalesce(bought, 0) - coalesce(paid, 0)",
    // Orders that are not in `new_order` are the delivered ones.
    "SELECT d_w_id, d_id FROM district \
     LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS orders, count(o_carrier_id) AS delivered FROM orders GROUP BY o_w_id, o_d_id) AS o \
     ON o_w_id = d_w_id AND o_d_id = d_id \
     LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS news FROM new_order GROUP BY no_w_id, no_d_id) AS n \
     ON no_w_id = d_w_id AND no_d_id = d_id \
     WHERE coalesce(orders, 0) - coalesce(news, 0) <> coalesce(delivered, 0)",
    // A customer's balance plus payments is the amount of delivered lines.
    "SELECT c_id FROM customer \
     LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS bought FROM orders \
     JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
     WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS b ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
     WHERE c_balance + c_ytd_payment <> coalesce(bought, 0)",
];
