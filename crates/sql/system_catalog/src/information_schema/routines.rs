//! Views of routines and parameters, which are empty: the standard's views contain only user-defined functions, and
//! Kiln has none.

use super::super::table_definition::{TableDefinition, no_rows};
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        13_377,
        "routines",
        "Functions; always empty. `pg_proc` has them.",
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
         routine_name name, routine_type varchar, module_catalog name, module_schema name, module_name name, \
         udt_catalog name, udt_schema name, udt_name name, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, \
         collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
         interval_precision int4, type_udt_catalog name, type_udt_schema name, type_udt_name name, scope_catalog name, \
         scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, routine_body varchar, \
         routine_definition varchar, external_name varchar, external_language varchar, parameter_style varchar, \
         is_deterministic char3, sql_data_access varchar, is_null_call char3, sql_path varchar, \
         schema_level_routine char3, max_dynamic_result_sets int4, is_user_defined_cast char3, \
         is_implicitly_invocable char3, security_type varchar, to_sql_specific_catalog name, to_sql_specific_schema name, \
         to_sql_specific_name name, as_locator char3, created timestamptz, last_altered timestamptz, \
         new_savepoint_level char3, is_udt_dependent char3",
        no_rows,
    ),
    view(
        13_334,
        "parameters",
        "Parameters of functions; always empty.",
        "specific_catalog name, specific_schema name, specific_name name, ordinal_position int4, parameter_mode varchar, \
         is_result char3, as_locator char3, parameter_name name, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, \
         collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
         interval_precision int4, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, \
         scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, parameter_default varchar",
        no_rows,
    ),
    view(
        13_353,
        "routine_privileges",
        "Privileges on functions; always empty.",
        "grantor name, grantee name, specific_catalog name, specific_schema name, specific_name name, routine_catalog name, \
         routine_schema name, routine_name name, privilege_type varchar, is_grantable char3",
        no_rows,
    ),
];
