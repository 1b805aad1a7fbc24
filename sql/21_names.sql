-- SPDX-License-Identifier: Apache-2.0
-- Names that were given without their folded form: before there was one, or by release 0.2.0. src/app/folding.c folds them.

-- Stores the folded form of channels or users. Leaves out who has another name by now, or is locked: it waits for no row, and for folded names
-- in the order in which users_create_many() takes them. Returns those that look like another one, and which; `is_new`: for the first time.
CREATE FUNCTION names_fold(of_table text, ids text[], names text[], forms text[]) RETURNS TABLE (id text, like_id text, is_new boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    one record;
    workspace text;
BEGIN
    FOR one IN SELECT f.* FROM unnest(ids, names, forms) AS f (id, name, form) ORDER BY f.form COLLATE "C" LOOP
        EXECUTE format('SELECT x.workspace_id, x.folded_from IS DISTINCT FROM x.name FROM %I x WHERE x.id = $1 AND x.name = $2'
                       ' FOR NO KEY UPDATE SKIP LOCKED', of_table) INTO workspace, is_new USING one.id, one.name;
        CONTINUE WHEN workspace IS NULL;
        EXECUTE format('SELECT y.id FROM %I y WHERE y.workspace_id = $1 AND y.folded = $2 AND y.folded_from = y.name AND y.id <> $3', of_table)
            INTO like_id USING workspace, one.form, one.id;
        IF like_id IS NULL OR is_new THEN
            BEGIN
                EXECUTE format('UPDATE %I x SET folded = $1, folded_from = x.name WHERE x.id = $2', of_table)
                    USING CASE WHEN like_id IS NULL THEN one.form END, one.id;
            EXCEPTION WHEN unique_violation THEN
                NULL; -- somebody has just taken it: it will be looked at again
            END;
        END IF;
        IF like_id IS NOT NULL THEN
            id := one.id;
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;
