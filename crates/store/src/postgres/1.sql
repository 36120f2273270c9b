-- The schema of a PostgreSQL store, version 1. `counterfoil migrate` applies it; it can be read, reviewed and applied by
-- hand as well (then add the row `INSERT INTO counterfoil.migration (version, applied_at) VALUES (1, counterfoil.clock())`).
--
-- No rule of a record's life stands here. The functions judge guards (absence, version together with lease id, a limit in
-- time, a quarantine that is the one the caller decided under) and nothing else; what is written was decided before.

CREATE SCHEMA IF NOT EXISTS counterfoil;

-- The one clock: milliseconds since 1970. Everything that is judged by time reads it here, so a test can replace it.
-- Not now(): in a long transaction that is the past.
CREATE FUNCTION counterfoil.clock() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

CREATE TABLE counterfoil.migration (
    version    integer PRIMARY KEY,
    applied_at bigint NOT NULL
);

-- One row: what is true of the store as a whole.
CREATE TABLE counterfoil.store (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    id                text NOT NULL,
    born_at           bigint NOT NULL,
    -- Claims that would execute and cannot be shown to be younger become unknown.
    quarantine_before bigint,
    -- The longest span from a completion to the end of what it promises, in milliseconds.
    longest_ms        bigint NOT NULL DEFAULT 0
);

INSERT INTO counterfoil.store (id, born_at)
VALUES (replace(gen_random_uuid()::text, '-', ''), counterfoil.clock());

-- One row for each identity: scope, operation and key as the bytes that they are, in plain columns, so that ordered keys
-- stay together in the index. The truth is `record`; the columns beside it serve guards and indexes and must agree with it.
CREATE TABLE counterfoil.record (
    -- The order of making, for lists.
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope        bytea NOT NULL,
    operation    bytea NOT NULL,
    key          bytea NOT NULL,
    -- The guard of every write: both together, never one of them alone.
    version      bigint NOT NULL,
    lease        bytea NOT NULL,
    -- 1 running, 2 unknown, 3 done, 4 spent, 5 unknown because it was answered without a receipt.
    state        smallint NOT NULL,
    -- When the action was first claimed.
    claimed_at   bigint NOT NULL,
    -- A claim gives its times as spans, and this is the instant that they count from; null: `record` holds instants.
    counted_from bigint,
    -- From when a sweep may change the row; null while it is running or unknown.
    expires_at   bigint,
    -- The whole record as versioned bytes with a checksum.
    record       bytea NOT NULL,
    -- Where an application may settle the record in its own transaction: the identity's digest, which its permit names,
    -- and what its receipt will be promised, in milliseconds.
    digest       bytea,
    retention_ms bigint,
    refuse_ms    bigint,
    -- What it settled: `record` is then what it was before, and both together are the record.
    settlement   bytea,
    UNIQUE (scope, operation, key)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX record_due ON counterfoil.record (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX record_unsettled ON counterfoil.record (id) WHERE expires_at IS NULL;
CREATE INDEX record_digest ON counterfoil.record (digest) WHERE digest IS NOT NULL;

-- What operators and alarms said of an identity. It outlives the record.
CREATE TABLE counterfoil.history (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope     bytea NOT NULL,
    operation bytea NOT NULL,
    key       bytea NOT NULL,
    at        bigint NOT NULL,
    kind      text NOT NULL,
    lease     bytea NOT NULL,
    who       text NOT NULL,
    why       text NOT NULL
);

CREATE INDEX history_of ON counterfoil.history (scope, operation, key, id);

-- A commit must be on disk, and on every standby that the server waits for, before anybody is answered: whatever the role
-- or the database says. For the current transaction only.
CREATE FUNCTION counterfoil.be_durable() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- Claims, in the order of the arrays. Nobody ever waits here: an identity that somebody's open transaction holds is `held`.
--
--   won          written, with the time
--   lost         something else stands: it is returned (or nothing does any more)
--   held         somebody's open transaction is at it
--   late         the limit has passed
--   quarantined  the quarantine is not the one that the caller decided under: it is returned, and nothing was written
--   busy         the quarantine is being changed
CREATE FUNCTION counterfoil.claim(
    locks             bigint[],   -- the identity's digest, first 64 bits
    scopes            bytea[],
    operations        bytea[],
    keys              bytea[],
    expected_versions bigint[],   -- null: nothing may stand
    expected_leases   bytea[],
    versions          bigint[],
    leases            bytea[],
    states            smallint[],
    counted           boolean[],  -- the record's times count from the time of this write
    claimed_ats       bigint[],   -- null: now
    records           bytea[],
    limits            bigint[],   -- null: none
    digests           bytea[],    -- null: no application may settle it
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
    stands   counterfoil.record;
    free     boolean;
    promised bigint;
BEGIN
    PERFORM counterfoil.be_durable();
    -- Shared by all claims and alone for whoever sets a quarantine, so that no claim is under way when one begins.
    free := pg_try_advisory_xact_lock_shared(1668247156, 1);
    SELECT quarantine_before INTO quarantined FROM counterfoil.store;
    FOR i IN 1 .. cardinality(keys) LOOP
        item := i;
        stands := NULL;
        IF NOT free THEN
            outcome := 'busy';
            at := counterfoil.clock();
        ELSIF quarantined IS DISTINCT FROM quarantine THEN
            outcome := 'quarantined';
            at := counterfoil.clock();
        ELSIF NOT pg_try_advisory_xact_lock(locks[i]) THEN
            outcome := 'held';
            at := counterfoil.clock();
        ELSE
            outcome := 'lost';
            at := counterfoil.clock();
            SELECT * INTO stands FROM counterfoil.record AS r
            WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i];
            IF at > limits[i] THEN
                outcome := 'late';
            ELSIF stands.id IS NULL AND expected_versions[i] IS NULL THEN
                INSERT INTO counterfoil.record
                    (scope, operation, key, version, lease, state, claimed_at, counted_from, record,
                     digest, retention_ms, refuse_ms)
                VALUES (scopes[i], operations[i], keys[i], versions[i], leases[i], states[i],
                    coalesce(claimed_ats[i], at), CASE WHEN counted[i] THEN at END, records[i],
                    digests[i], retentions[i], refusals[i])
                ON CONFLICT DO NOTHING;
                IF FOUND THEN
                    outcome := 'won';
                ELSE
                    SELECT * INTO stands FROM counterfoil.record AS r
                    WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i];
                END IF;
            ELSIF stands.version = expected_versions[i] AND stands.lease = expected_leases[i] THEN
                UPDATE counterfoil.record AS r
                SET version = versions[i], lease = leases[i], state = states[i], expires_at = NULL,
                    claimed_at = coalesce(claimed_ats[i], at), counted_from = CASE WHEN counted[i] THEN at END,
                    record = records[i], settlement = NULL,
                    digest = digests[i], retention_ms = retentions[i], refuse_ms = refusals[i]
                WHERE r.id = (
                    SELECT l.id FROM counterfoil.record AS l
                    WHERE l.scope = scopes[i] AND l.operation = operations[i] AND l.key = keys[i]
                        AND l.version = expected_versions[i] AND l.lease = expected_leases[i]
                    FOR UPDATE SKIP LOCKED);
                IF FOUND THEN
                    outcome := 'won';
                ELSE
                    SELECT * INTO stands FROM counterfoil.record AS r
                    WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i];
                    IF stands.version = expected_versions[i] AND stands.lease = expected_leases[i] THEN
                        outcome := 'held';
                    END IF;
                END IF;
            ELSIF stands.lease = leases[i] AND stands.version = versions[i] THEN
                -- The caller's own claim, whose reply was lost. Written anew, so that this commit waits for all that the
                -- first one should have waited for.
                UPDATE counterfoil.record AS r SET version = versions[i]
                WHERE r.id = stands.id AND r.version = versions[i] AND r.lease = leases[i];
            END IF;
        END IF;
        IF outcome = 'won' AND digests[i] IS NOT NULL THEN
            -- Now and not when it is settled: an application's transaction may be long, and this row is everybody's.
            promised := retentions[i] + coalesce(refusals[i], 0);
            IF promised > (SELECT s.longest_ms FROM counterfoil.store AS s) THEN
                UPDATE counterfoil.store AS s SET longest_ms = greatest(s.longest_ms, promised);
            END IF;
        END IF;
        IF outcome <> 'lost' THEN
            stands := NULL;
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

-- Every other write: completions, renewals, releases, what operators say. Outcomes as above. A row that somebody else has
-- locked is `held`, so that one such row does not hold up the others; with `patient` it is waited for, as long as the
-- lock limit lasts.
CREATE FUNCTION counterfoil.put(
    scopes            bytea[],
    operations        bytea[],
    keys              bytea[],
    expected_versions bigint[],   -- null: nothing may stand
    expected_leases   bytea[],
    versions          bigint[],
    leases            bytea[],
    states            smallint[],
    claimed_ats       bigint[],
    expires_ats       bigint[],
    records           bytea[],    -- null: the row goes
    limits            bigint[],
    spans             bigint[],   -- how long a receipt is promised, in milliseconds
    note_ats          bigint[],
    note_kinds        text[],     -- null: no note
    note_leases       bytea[],
    note_whos         text[],
    note_whys         text[],
    patient           boolean,
    lock_ms           bigint      -- null: what the transaction says already
) RETURNS TABLE (
    item integer, outcome text, at bigint,
    stands_version bigint, stands_lease bytea, stands_claimed bigint, stands_from bigint, stands_expires bigint,
    stands_record bytea, stands_settlement bytea
)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    stands   counterfoil.record;
    found_id bigint;
BEGIN
    PERFORM counterfoil.be_durable();
    IF lock_ms IS NOT NULL THEN
        PERFORM set_config('lock_timeout', lock_ms::text, true);
    END IF;
    FOR i IN 1 .. cardinality(keys) LOOP
        item := i;
        outcome := 'lost';
        at := counterfoil.clock();
        stands := NULL;
        found_id := NULL;
        IF at > limits[i] THEN
            outcome := 'late';
        ELSIF expected_versions[i] IS NULL THEN
            IF records[i] IS NULL THEN
                IF NOT EXISTS (SELECT FROM counterfoil.record AS r
                    WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i]) THEN
                    outcome := 'won';
                END IF;
            ELSE
                INSERT INTO counterfoil.record
                    (scope, operation, key, version, lease, state, claimed_at, expires_at, record)
                VALUES (scopes[i], operations[i], keys[i], versions[i], leases[i], states[i], claimed_ats[i],
                    expires_ats[i], records[i])
                ON CONFLICT DO NOTHING;
                IF FOUND THEN
                    outcome := 'won';
                END IF;
            END IF;
        ELSE
            IF patient THEN
                SELECT r.id INTO found_id FROM counterfoil.record AS r
                WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i]
                    AND r.version = expected_versions[i] AND r.lease = expected_leases[i]
                FOR UPDATE;
            ELSE
                SELECT r.id INTO found_id FROM counterfoil.record AS r
                WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i]
                    AND r.version = expected_versions[i] AND r.lease = expected_leases[i]
                FOR UPDATE SKIP LOCKED;
            END IF;
            IF found_id IS NOT NULL THEN
                outcome := 'won';
                IF records[i] IS NULL THEN
                    DELETE FROM counterfoil.record AS r WHERE r.id = found_id;
                ELSE
                    UPDATE counterfoil.record AS r
                    SET version = versions[i], lease = leases[i], state = states[i], claimed_at = claimed_ats[i],
                        counted_from = NULL, expires_at = expires_ats[i], record = records[i], settlement = NULL
                    WHERE r.id = found_id;
                END IF;
            END IF;
        END IF;
        IF outcome = 'won' THEN
            IF spans[i] > (SELECT s.longest_ms FROM counterfoil.store AS s) THEN
                UPDATE counterfoil.store AS s SET longest_ms = greatest(s.longest_ms, spans[i]);
            END IF;
            IF note_kinds[i] IS NOT NULL THEN
                INSERT INTO counterfoil.history (scope, operation, key, at, kind, lease, who, why)
                VALUES (scopes[i], operations[i], keys[i], note_ats[i], note_kinds[i], note_leases[i], note_whos[i],
                    note_whys[i]);
            END IF;
        ELSIF outcome = 'lost' THEN
            SELECT * INTO stands FROM counterfoil.record AS r
            WHERE r.scope = scopes[i] AND r.operation = operations[i] AND r.key = keys[i];
            IF stands.version = expected_versions[i] AND stands.lease = expected_leases[i] THEN
                outcome := 'held';
                stands := NULL;
            ELSIF stands.record = records[i] AND stands.version = versions[i] AND stands.lease = leases[i] THEN
                -- The caller's own write, whose reply was lost: as in a claim.
                UPDATE counterfoil.record AS r SET version = versions[i]
                WHERE r.id = stands.id AND r.version = versions[i] AND r.lease = leases[i];
            END IF;
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

-- Sets or lifts the quarantine, once no claim is under way.
CREATE FUNCTION counterfoil.quarantine(before bigint, lock_ms bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM counterfoil.be_durable();
    PERFORM set_config('lock_timeout', lock_ms::text, true);
    PERFORM pg_advisory_xact_lock(1668247156, 1);
    UPDATE counterfoil.store SET quarantine_before = before;
END $$;

-- Nobody but the owner and whoever is granted it.
REVOKE ALL ON ALL TABLES IN SCHEMA counterfoil FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA counterfoil FROM PUBLIC;
