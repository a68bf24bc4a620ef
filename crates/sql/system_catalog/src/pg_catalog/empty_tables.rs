//! Catalogs of features that Kiln does not have: they exist so that clients' queries run, and are always empty.

use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::{catalog, view};

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2620,
        "pg_trigger",
        "Triggers; always empty.",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal bool, \
         tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, \
         tgattr int2vector, tgargs bytea, tgqual pg_node_tree, tgoldtable name, tgnewtable name",
        no_rows,
    ),
    catalog(
        3256,
        "pg_policy",
        "Row-level security policies; always empty.",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles oid[], polqual pg_node_tree, polwithcheck pg_node_tree",
        no_rows,
    ),
    catalog(
        6104,
        "pg_publication",
        "Publications; always empty.",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool",
        no_rows,
    ),
    catalog(
        6237,
        "pg_publication_namespace",
        "Schemas of publications; always empty.",
        "oid oid, pnpubid oid, pnnspid oid",
        no_rows,
    ),
    catalog(
        6106,
        "pg_publication_rel",
        "Tables of publications; always empty.",
        "oid oid, prpubid oid, prrelid oid, prqual pg_node_tree, prattrs int2vector",
        no_rows,
    ),
    view(
        12_068,
        "pg_publication_tables",
        "Tables of publications, by name; always empty.",
        "pubname name, schemaname name, tablename name, attnames name[], rowfilter text",
        no_rows,
    ),
    catalog(
        6100,
        "pg_subscription",
        "Subscriptions; always empty.",
        "oid oid, subdbid oid, subskiplsn pg_lsn, subname name, subowner oid, subenabled bool, subbinary bool, substream bool, \
         subtwophasestate char, subdisableonerr bool, subconninfo text, subslotname name, subsynccommit text, subpublications text[]",
        no_rows,
    ),
    catalog(
        6102,
        "pg_subscription_rel",
        "Tables of subscriptions; always empty.",
        "srsubid oid, srrelid oid, srsubstate char, srsublsn pg_lsn",
        no_rows,
    ),
    catalog(
        3381,
        "pg_statistic_ext",
        "Extended statistics; always empty.",
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2vector, stxkind char[], stxexprs pg_node_tree",
        no_rows,
    ),
    catalog(
        3466,
        "pg_event_trigger",
        "Event triggers; always empty.",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags text[]",
        no_rows,
    ),
    catalog(
        1418,
        "pg_user_mapping",
        "User mappings of foreign servers; always empty.",
        "oid oid, umuser oid, umserver oid, umoptions text[]",
        no_rows,
    ),
    view(
        12_327,
        "pg_user_mappings",
        "User mappings of foreign servers, by name; always empty.",
        "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]",
        no_rows,
    ),
    catalog(
        3350,
        "pg_partitioned_table",
        "Partitioned tables; always empty.",
        "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, partclass oidvector, partcollation oidvector, partexprs pg_node_tree",
        no_rows,
    ),
    catalog(
        3576,
        "pg_transform",
        "Transforms of types; always empty.",
        "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc",
        no_rows,
    ),
    catalog(
        3596,
        "pg_seclabel",
        "Security labels; always empty.",
        "objoid oid, classoid oid, objsubid int4, provider text, label text",
        no_rows,
    ),
    view(
        12_099,
        "pg_seclabels",
        "Security labels, by name; always empty.",
        "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, label text",
        no_rows,
    ),
    catalog(
        3592,
        "pg_shseclabel",
        "Security labels of roles and databases; always empty.",
        "objoid oid, classoid oid, provider text, label text",
        no_rows,
    ),
    catalog(
        2995,
        "pg_largeobject_metadata",
        "Large objects; always empty.",
        "oid oid, lomowner oid, lomacl aclitem[]",
        no_rows,
    ),
    catalog(
        3600,
        "pg_ts_dict",
        "Dictionaries of text search; always empty.",
        "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
        no_rows,
    ),
    catalog(
        3601,
        "pg_ts_parser",
        "Parsers of text search; always empty.",
        "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, prsend regproc, prsheadline regproc, prslextype regproc",
        no_rows,
    ),
    catalog(
        3602,
        "pg_ts_config",
        "Configurations of text search; always empty.",
        "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid",
        no_rows,
    ),
    catalog(
        3603,
        "pg_ts_config_map",
        "Dictionaries of each text search configuration; always empty.",
        "mapcfg oid, maptokentype int4, mapseqno int4, mapdict oid",
        no_rows,
    ),
    catalog(
        3764,
        "pg_ts_template",
        "Templates of text search; always empty.",
        "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc",
        no_rows,
    ),
    view(
        12_081,
        "pg_available_extensions",
        "Extensions that could be installed; always empty.",
        "name name, default_version text, installed_version text, comment text",
        no_rows,
    ),
    view(
        12_085,
        "pg_available_extension_versions",
        "Versions of extensions; always empty.",
        "name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, requires name[], comment text",
        no_rows,
    ),
    view(
        12_090,
        "pg_prepared_xacts",
        "Prepared transactions; always empty.",
        "transaction xid, gid text, prepared timestamptz, owner name, database name",
        no_rows,
    ),
    view(
        12_257,
        "pg_replication_slots",
        "Replication slots; always empty.",
        "slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, active_pid int4, \
         xmin xid, catalog_xmin xid, restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, safe_wal_size int8, two_phase bool",
        no_rows,
    ),
    view(
        12_141,
        "pg_stat_replication",
        "Standby servers; always empty.",
        "pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, client_port int4, \
         backend_start timestamptz, backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn pg_lsn, \
         replay_lsn pg_lsn, write_lag interval, flush_lag interval, replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz",
        no_rows,
    ),
];
