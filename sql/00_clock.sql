-- SPDX-License-Identifier: Apache-2.0
-- Postgres' clock, which all instances use, and what happens when it is stepped. The ts of a channel never goes back, so a channel that was
-- written to while the clock was ahead stays ahead of it. docs/operations.md, "Postgres' clock"

-- Microseconds since 1970.
CREATE FUNCTION clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The largest difference from when the clock was noted last, or of a ts from the clock, that is no sign of a step.
CREATE FUNCTION clock_leap_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 600000000 $$;
CREATE FUNCTION clock_ahead_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 60000000 $$;

-- For how long nothing must be deleted by age, because the clock has leapt: as long as it leapt, at most `most_us`; 0: it has not, or not
-- lately. A step of which this is the first statement counts as well.
CREATE FUNCTION clock_hold_us(most_us bigint DEFAULT 86400000000) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN abs(n.us - s.us) > clock_leap_us() THEN least(greatest(abs(n.us - s.us), s.hold_us - (s.us - s.leapt_us)), most_us)
                ELSE greatest(least(s.hold_us, most_us) - greatest(n.us - s.leapt_us, 0), 0) END
    FROM clock_seen s CROSS JOIN (SELECT clock_us() AS us) n
$$;

-- A channel's next ts is ahead of the clock by more than clock_ahead_us(): notes it, and makes the month that the message belongs to. Callers
-- hold locks, so it waits for nobody who notes another one.
CREATE FUNCTION clock_passed(ts bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM clock_seen s WHERE s.highest_us < ts - clock_ahead_us() FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE clock_seen SET highest_us = ts;
    END IF;
    PERFORM message_partition_make(to_timestamp(ts / 1000000));
END $$;

-- Brings forward what is due later than it may be, because that was written while the clock was ahead. Too early does no harm: what is to be
-- sent is decided when it is due. Leases get a minute, in which their holders renew them.
CREATE FUNCTION clock_went_back() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM push_turns t WHERE t.due_at IS NOT NULL ORDER BY t.user_id, t.app, t.device_id FOR NO KEY UPDATE;
    UPDATE push_jobs j SET due_at = CASE WHEN j.due_at > clock_timestamp() THEN clock_timestamp() ELSE j.due_at END,
        since = CASE WHEN j.since > clock_timestamp() THEN clock_timestamp() ELSE j.since END,
        check_at = CASE WHEN j.check_at > clock_timestamp() THEN clock_timestamp() ELSE j.check_at END
    WHERE j.due_at > clock_timestamp() OR j.check_at > clock_timestamp();
    UPDATE push_turns t SET due_at = clock_timestamp() + interval '1 minute' WHERE t.due_at > clock_timestamp() + interval '1 minute';
    PERFORM FROM apps a ORDER BY a.id FOR NO KEY UPDATE;
    UPDATE apps a SET linked_at = least(a.linked_at, now()), linked_since = least(a.linked_since, clock_us()), verify_at = least(a.verify_at, now())
    WHERE greatest(a.linked_at, a.verify_at) > now() OR a.linked_since > clock_us();
    UPDATE app_events e SET due_at = least(e.due_at, now() + interval '1 minute'), queued_at = least(e.queued_at, now())
    WHERE e.ctid = ANY (ARRAY(SELECT x.ctid FROM app_events x WHERE x.due_at > now() + interval '1 minute' OR x.queued_at > now()
                              FOR UPDATE SKIP LOCKED)); -- whoever has locked one sets its time just now
END $$;

-- Notes the clock. `ahead_s`: how far the highest ts is ahead of it. `hold_s`: clock_hold_us().
CREATE FUNCTION clock_note() RETURNS TABLE (ahead_s bigint, hold_s bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now_us bigint := clock_us();
    leap_us bigint := now_us - (SELECT s.us FROM clock_seen s);
BEGIN
    IF abs(leap_us) > clock_leap_us() THEN
        UPDATE clock_seen s SET us = now_us, leapt_us = now_us, hold_us = clock_hold_us();
        IF leap_us < 0 THEN
            PERFORM clock_went_back();
        END IF;
    ELSIF abs(leap_us) > clock_leap_us() / 60 THEN
        UPDATE clock_seen s SET us = now_us;
    END IF;
    RETURN QUERY SELECT greatest(s.highest_us - now_us, 0) / 1000000, (clock_hold_us() + 999999) / 1000000 FROM clock_seen s;
END $$;
