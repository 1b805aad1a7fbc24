-- SPDX-License-Identifier: Apache-2.0
-- Names that were given without their folded form: before there was one, or by release 0.2.0. src/app/folding.c folds them.

-- Stores the folded form of channels or users. Leaves out who has another name by now, or is locked: it waits for no row, and for folded names
-- in the order in which users_create_many() takes them. Returns those that look like another one, and which; `is_new`: for the first time.
CREATE FUNCTION names_fold(of_table text, ids text[], names text[], forms text[]) RETURNS TABLE (id text, like_id text, is_new boolean)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY EXECUTE replace($names$
        WITH locked AS MATERIALIZED (
            SELECT x.id, x.workspace_id, f.form, x.folded_from IS DISTINCT FROM x.name AS is_new
            FROM unnest($1, $2, $3) AS f (id, name, form) JOIN of_table x ON x.id = f.id AND x.name = f.name
            FOR NO KEY UPDATE OF x SKIP LOCKED
        ), seen AS MATERIALIZED (
            SELECT l.id, l.form, l.is_new,
                   coalesce((SELECT y.id FROM of_table y
                             WHERE y.workspace_id = l.workspace_id AND y.folded = l.form AND y.folded_from = y.name AND y.id <> l.id),
                            first_value(l.id) OVER same) AS like_id
            FROM locked l WINDOW same AS (PARTITION BY l.workspace_id, l.form ORDER BY l.id)
            ORDER BY l.form COLLATE "C"
        ), stored AS (
            UPDATE of_table x SET folded = CASE WHEN s.like_id = s.id THEN s.form END, folded_from = x.name
            FROM seen s WHERE x.id = s.id AND (s.like_id = s.id OR s.is_new)
        )
        SELECT s.id, s.like_id, s.is_new FROM seen s WHERE s.like_id <> s.id
        $names$, 'of_table', quote_ident(of_table)) USING ids, names, forms;
EXCEPTION WHEN unique_violation THEN
    NULL; -- somebody has just taken such a name: all will be looked at again
END $$;
