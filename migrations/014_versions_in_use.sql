-- SPDX-License-Identifier: Apache-2.0
-- release: 0.2.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- Which versions of Tidings run on this database, so that what none of them needs any more can go.

CREATE TABLE versions_in_use (
    functions text COLLATE "C" NOT NULL,  -- the schema of its Postgres functions and views
    library text COLLATE "C" NOT NULL,    -- of its Redis functions
    release text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    used_at timestamptz NOT NULL DEFAULT now(), -- when an instance last said that it runs
    PRIMARY KEY (functions, library)
);

-- Release 0.1.0 has its functions among the tables.
INSERT INTO versions_in_use (functions, library, release)
SELECT current_schema(), 'tidings_v1', '0.1.0'
WHERE EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = 'post_batch');

-- Release 0.1.0 counted its functions as migrations, too. Its "migrate" must not make some of them in a database that never had them.
INSERT INTO schema_migrations (version, name, release, before_runs)
SELECT n, 'functions of 0.1.0', '0.1.0', true FROM generate_series(2, 13) AS n
ON CONFLICT (version) DO NOTHING;
