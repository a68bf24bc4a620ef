//! Views of features that Kiln does not have, which are always empty.

use super::super::table_definition::{TableDefinition, no_rows};
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        13_440,
        "triggers",
        "Triggers; always empty.",
        "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation varchar, \
         event_object_catalog name, event_object_schema name, event_object_table name, action_order int4, \
         action_condition varchar, action_statement varchar, action_orientation varchar, action_timing varchar, \
         action_reference_old_table name, action_reference_new_table name, action_reference_old_row name, \
         action_reference_new_row name, created timestamptz",
        no_rows,
    ),
    view(
        13_320,
        "domains",
        "Domains; always empty.",
        "domain_catalog name, domain_schema name, domain_name name, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, \
         collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
         interval_precision int4, domain_default varchar, udt_catalog name, udt_schema name, udt_name name, \
         scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name",
        no_rows,
    ),
    view(
        13_310,
        "domain_constraints",
        "Constraints of domains; always empty.",
        "constraint_catalog name, constraint_schema name, constraint_name name, domain_catalog name, domain_schema name, \
         domain_name name, is_deferrable char3, initially_deferred char3",
        no_rows,
    ),
    view(
        13_463,
        "user_defined_types",
        "Composite types; always empty.",
        "user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, \
         user_defined_type_category varchar, is_instantiable char3, is_final char3, ordering_form varchar, \
         ordering_category varchar, data_type varchar",
        no_rows,
    ),
    view(
        13_541,
        "foreign_tables",
        "Foreign tables; always empty.",
        "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, foreign_server_catalog name, \
         foreign_server_name name",
        no_rows,
    ),
    view(
        13_528,
        "foreign_servers",
        "Foreign servers; always empty.",
        "foreign_server_catalog name, foreign_server_name name, foreign_data_wrapper_catalog name, \
         foreign_data_wrapper_name name, foreign_server_type varchar, foreign_server_version varchar, \
         authorization_identifier name",
        no_rows,
    ),
];
