# SPDX-License-Identifier: Apache-2.0
"""The tables of a database, from Postgres' catalog. Functions and views are not included: each version has its own."""

# Tables and sequences that are not of one version alone, and no months of messages.
OURS = """
    SELECT n.nspname AS schema, c.relname AS name, c.oid, c.relkind, c.relpersistence, c.reloptions FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname !~ '^(pg_|information_schema$|tidings_)' AND c.relkind IN ('r', 'p', 'S') AND NOT c.relispartition
"""
QUERIES = {
    "tables": f"SELECT c.schema, c.name, c.relkind, c.relpersistence, c.reloptions, pg_get_partkeydef(c.oid) FROM ({OURS}) c",
    # In their order: SELECT * and COPY go by it.
    "columns": f"""
        SELECT c.schema, c.name, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod),
               a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, a.attstorage, a.attcompression, l.collname
        FROM ({OURS}) c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_collation l ON l.oid = a.attcollation""",
    "constraints": f"""
        SELECT c.schema, c.name, k.conname, k.convalidated, pg_get_constraintdef(k.oid)
        FROM ({OURS}) c JOIN pg_constraint k ON k.conrelid = c.oid""",
    "indexes": f"SELECT c.schema, c.name, pg_get_indexdef(i.indexrelid), i.indisvalid FROM ({OURS}) c JOIN pg_index i ON i.indrelid = c.oid",
    "triggers": f"""
        SELECT c.schema, c.name, pg_get_triggerdef(t.oid) FROM ({OURS}) c
        JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal""",
}


def tables(database):
    """The objects in the connection's database, by kind, as sets of rows."""
    return {kind: {str(row) for row in database.execute(query)} for kind, query in QUERIES.items()}
