-- Version 4 of the schema. Claims that nothing stands in the way of are written by one INSERT. An effect that is one
-- statement: claim, effect and receipt in one round trip, and under load those of many callers in one transaction, each
-- undone alone where it fails.
--
-- No rule of a record's life stands here either: what may run where nothing stands was decided before, and whatever stands
-- is only told.

-- One by one, as version 1 has it: what each outcome means is said there.
ALTER FUNCTION counterfoil.claim(
    bigint[], bytea[], bytea[], bytea[], bigint[], bytea[], bigint[], bytea[], smallint[], boolean[], bigint[], bytea[],
    bigint[], bytea[], bigint[], bigint[], bigint
) RENAME TO claim_each;

-- Nearly always all of them are new and free: then they go together, at half the cost. Else each is looked at by itself. What
-- a transaction of a caller's asks for is one claim, and no error of this function's may end it. Arrays are unnested side by
-- side in a list of columns, where their values are not stored in between, and a query that has nothing to see is left out:
-- each costs as much as writing a row.
CREATE FUNCTION counterfoil.claim(
    locks             bigint[],
    scopes            bytea[],
    operations        bytea[],
    keys              bytea[],
    expected_versions bigint[],
    expected_leases   bytea[],
    versions          bigint[],
    leases            bytea[],
    states            smallint[],
    counted           boolean[],
    claimed_ats       bigint[],
    records           bytea[],
    limits            bigint[],
    digests           bytea[],
    retentions        bigint[],
    refusals          bigint[],
    quarantine        bigint
) RETURNS TABLE (
    item integer, outcome text, at bigint, quarantined bigint,
    stands_version bigint, stands_lease bytea, stands_claimed bigint, stands_from bigint, stands_expires bigint,
    stands_record bytea, stands_settlement bytea
)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    free     boolean := false;
    promised bigint;
BEGIN
    IF cardinality(keys) > 1 THEN
        IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
            PERFORM counterfoil.be_durable();
        END IF;
        free := pg_try_advisory_xact_lock_shared(1668247156, 1);
        SELECT s.quarantine_before, free AND s.quarantine_before IS NOT DISTINCT FROM quarantine AND (
            SELECT bool_and(w.expected IS NULL AND pg_try_advisory_xact_lock(w.lock))
            FROM (SELECT unnest(locks) AS lock, unnest(expected_versions) AS expected) AS w)
        INTO quarantined, free FROM counterfoil.store AS s;
    END IF;
    -- In a statement of its own: it sees all that was committed before the locks were taken.
    IF free THEN
        at := counterfoil.clock();
        free := NOT EXISTS (
            SELECT FROM (
                SELECT unnest(scopes) AS scope, unnest(operations) AS operation, unnest(keys) AS key OFFSET 0) AS w, LATERAL (
                SELECT r.id FROM counterfoil.record AS r
                WHERE r.scope = w.scope AND r.operation = w.operation AND r.key = w.key LIMIT 1) AS stands);
    END IF;
    IF free AND array_remove(limits, NULL) <> '{}' THEN
        free := NOT EXISTS (SELECT FROM unnest(limits) AS w (until) WHERE at > w.until);
    END IF;
    IF NOT free THEN
        RETURN QUERY SELECT * FROM counterfoil.claim_each(locks, scopes, operations, keys, expected_versions,
            expected_leases, versions, leases, states, counted, claimed_ats, records, limits, digests, retentions, refusals,
            quarantine);
        RETURN;
    END IF;
    -- What is no claim takes no lock: where one wrote a record meanwhile this is a unique violation, and they come again one
    -- by one.
    INSERT INTO counterfoil.record
        (scope, operation, key, version, lease, state, claimed_at, counted_from, record, digest, retention_ms, refuse_ms)
    SELECT w.scope, w.operation, w.key, w.version, w.lease, w.state, coalesce(w.claimed, at),
        CASE WHEN w.counts THEN at END, w.record, w.digest, w.retention, w.refusal
    FROM (
        SELECT unnest(scopes) AS scope, unnest(operations) AS operation, unnest(keys) AS key, unnest(versions) AS version,
            unnest(leases) AS lease, unnest(states) AS state, unnest(claimed_ats) AS claimed, unnest(counted) AS counts,
            unnest(records) AS record, unnest(digests) AS digest, unnest(retentions) AS retention,
            unnest(refusals) AS refusal) AS w;
    IF array_remove(digests, NULL) <> '{}' THEN
        SELECT max(w.retention + coalesce(w.refusal, 0)) INTO promised
        FROM unnest(digests, retentions, refusals) AS w (digest, retention, refusal) WHERE w.digest IS NOT NULL;
        IF promised > (SELECT s.longest_ms FROM counterfoil.store AS s) THEN
            UPDATE counterfoil.store AS s SET longest_ms = greatest(s.longest_ms, promised);
        END IF;
    END IF;
    outcome := 'won';
    FOR i IN 1 .. cardinality(keys) LOOP
        item := i;
        RETURN NEXT;
    END LOOP;
END $$;

-- Runs `statement` with its one parameter $1, the JSON `argument`. Its one row is the receipt: status, headers as
-- [["name", "value"], ...], body as text. Answers the receipt's bytes.
CREATE FUNCTION counterfoil.carry_out(
    statement text, argument text, at bigint, retention_ms bigint, refuse_ms bigint
) RETURNS bytea
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    status  integer;
    headers jsonb;
    body    text;
BEGIN
    EXECUTE statement INTO STRICT status, headers, body USING argument::jsonb;
    RETURN counterfoil.settlement(at, retention_ms, refuse_ms, status, headers, convert_to(body, 'UTF8'));
END $$;

-- Claims, runs and writes what was decided to run where nothing stands, in the order of the arrays.
--
--   won          effect and receipt are written, with the time and the receipt's bytes
--   failed       the effect failed, with the code and what the server said of it; nothing of it is left
--   lost         something stands: it is returned
--   held         somebody's open transaction is at it
--   quarantined  a quarantine stands: it is returned, and nothing was written
--   busy         the quarantine is being changed
--   again        this call has lasted long enough: it was not tried
CREATE FUNCTION counterfoil.apply(
    locks       bigint[],   -- the identity's digest, first 64 bits
    scopes      bytea[],
    operations  bytea[],
    keys        bytea[],
    leases      bytea[],
    records     bytea[],    -- as it runs, its times counted from the time of this write
    retentions  bigint[],
    refusals    bigint[],   -- null: none
    statements  text[],
    arguments   text[],
    lock_ms     bigint,
    budget_ms   bigint      -- after so long nothing more is begun
) RETURNS TABLE (
    item integer, outcome text, at bigint, quarantined bigint,
    stands_version bigint, stands_lease bytea, stands_claimed bigint, stands_from bigint, stands_expires bigint,
    stands_record bytea, stands_settlement bytea, code text, message text
)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    stands  counterfoil.record;
    written bytea;
    free    boolean;
    began   bigint;
BEGIN
    PERFORM counterfoil.be_durable();
    PERFORM set_config('lock_timeout', lock_ms::text, true);
    -- A constraint that waits for COMMIT would fail everybody's.
    SET CONSTRAINTS ALL IMMEDIATE;
    free := pg_try_advisory_xact_lock_shared(1668247156, 1);
    SELECT quarantine_before INTO quarantined FROM counterfoil.store;
    began := counterfoil.clock();
    FOR i IN 1 .. cardinality(keys) LOOP
        item := i;
        at := counterfoil.clock();
        stands := NULL;
        code := NULL;
        message := NULL;
        IF NOT free THEN
            outcome := 'busy';
        ELSIF quarantined IS NOT NULL THEN
            outcome := 'quarantined';
        ELSIF i > 1 AND at - began > budget_ms THEN
            outcome := 'again';
        ELSE
            BEGIN
                IF NOT pg_try_advisory_xact_lock(locks[i]) THEN
                    outcome := 'held';
                ELSE
                    outcome := 'lost';
                    SELECT * INTO stands FROM counterfoil.record AS r
                    WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i];
                    IF stands.id IS NULL THEN
                        written := counterfoil.carry_out(statements[i], arguments[i], at, retentions[i], refusals[i]);
                        INSERT INTO counterfoil.record
                            (scope, operation, key, version, lease, state, claimed_at, counted_from, expires_at, record,
                             settlement)
                        VALUES (scopes[i], operations[i], keys[i], 2, leases[i], 3, at, at, at + retentions[i],
                            records[i], written)
                        ON CONFLICT DO NOTHING;
                        IF NOT FOUND THEN
                            RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'somebody wrote the record meanwhile';
                        END IF;
                        outcome := 'won';
                        stands.settlement := written;
                    END IF;
                END IF;
            EXCEPTION WHEN OTHERS THEN
                outcome := 'failed';
                code := SQLSTATE;
                message := SQLERRM;
                stands := NULL;
            END;
        END IF;
        stands_version := stands.version;
        stands_lease := stands.lease;
        stands_claimed := stands.claimed_at;
        stands_from := stands.counted_from;
        stands_expires := stands.expires_at;
        stands_record := stands.record;
        stands_settlement := stands.settlement;
        RETURN NEXT;
    END LOOP;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA counterfoil FROM PUBLIC;
