-- Coupling by permit, version 2 of the schema: an application in any language commits its effect together with the
-- receipt, in a transaction of its own in this database. It calls
--
--     SELECT counterfoil.hold(permit);                             -- first; false: do nothing, roll back
--     SELECT counterfoil.settle(permit, status, headers, body);    -- last, before COMMIT
--
-- with the text that came in `Idempotency-Permit`. Its role needs these and nothing on the tables:
--
--     GRANT USAGE ON SCHEMA counterfoil TO the_role;
--     GRANT EXECUTE ON FUNCTION counterfoil.hold(text), counterfoil.settle(text, integer, jsonb, bytea) TO the_role;
--
-- What is refused, at settle or at COMMIT: CF001 another attempt has taken over, CF002 the action is settled already, CF003 no
-- record knows the permit, CF004 held and not settled in this transaction. The rule is `core::action::{hold, settle}`, and a
-- test compares every state with it.

-- What this transaction has held. A row lives from `hold` to COMMIT, where the trigger takes it away or refuses; nobody
-- else ever sees one, so it is not worth a log.
CREATE UNLOGGED TABLE counterfoil.held (
    xact    xid8 NOT NULL,
    id      bigint GENERATED ALWAYS AS IDENTITY,
    lease   bytea,
    digest  text,
    -- The code that COMMIT is refused with, if settled or not.
    refusal text,
    settled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (xact, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Reads a permit, locks its record, and says what is against it: nothing, or a code.
CREATE FUNCTION counterfoil.judge(permit text, OUT row_id bigint, OUT lease bytea, OUT digest text, OUT refusal text)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    named  bytea;
    stands record;
BEGIN
    IF permit IS NULL OR permit !~ '^cf1-[0-9a-f]{32}-[0-9a-f]{64}$' THEN
        refusal := 'CF003';
        RETURN;
    END IF;
    lease := decode(substr(permit, 5, 32), 'hex');
    digest := substr(permit, 38, 16);
    named := decode(substr(permit, 38, 64), 'hex');
    SELECT r.id, r.lease, r.state INTO stands FROM counterfoil.record AS r WHERE r.digest = named FOR UPDATE;
    row_id := stands.id;
    refusal := CASE
        WHEN stands.id IS NULL THEN 'CF003'
        WHEN stands.lease <> lease THEN 'CF001'
        WHEN stands.state IN (1, 5) THEN NULL
        WHEN stands.state IN (3, 4) THEN 'CF002'
        ELSE 'CF001'
    END;
END $$;

-- Raises a refusal, with the next step.
CREATE FUNCTION counterfoil.refuse(refusal text, digest text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named text := coalesce('action ' || digest || ': ', '');
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = refusal,
        MESSAGE = named || CASE refusal
            WHEN 'CF001' THEN 'this attempt was superseded'
            WHEN 'CF002' THEN 'it is settled already'
            WHEN 'CF003' THEN 'no record knows this permit'
            ELSE 'it was held and not settled in this transaction'
        END,
        HINT = CASE refusal
            WHEN 'CF001' THEN 'roll back and answer anything: another attempt runs, and its receipt will be replayed'
            WHEN 'CF002' THEN 'roll back and answer anything: the caller gets the receipt that stands'
            WHEN 'CF003' THEN 'roll back; pass the text of the request''s Idempotency-Permit header as it came, once'
            ELSE 'call counterfoil.settle(permit, status, headers, body) as the last statement before COMMIT, outside any '
                || 'savepoint that is rolled back'
        END;
END $$;

-- At COMMIT: what was held must be settled in this same transaction, and what was refused must not commit.
CREATE FUNCTION counterfoil.refuse_commit() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mark counterfoil.held;
BEGIN
    SELECT * INTO mark FROM counterfoil.held AS h WHERE h.xact = pg_current_xact_id() AND h.id = NEW.id;
    IF mark.refusal IS NOT NULL THEN
        PERFORM counterfoil.refuse(mark.refusal, mark.digest);
    ELSIF mark.settled IS NOT TRUE THEN
        PERFORM counterfoil.refuse('CF004', NEW.digest);
    END IF;
    DELETE FROM counterfoil.held AS h WHERE h.xact = mark.xact AND h.id = mark.id;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER held_is_settled AFTER INSERT ON counterfoil.held
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION counterfoil.refuse_commit();

-- Also where a session plays a replica's part.
ALTER TABLE counterfoil.held ENABLE ALWAYS TRIGGER held_is_settled;

-- Locks the action's record for this transaction. True: go on, and settle. False: do nothing and roll back; COMMIT would be
-- refused. It does not raise, because frameworks swallow what is raised in a savepoint. Call it outside any savepoint:
-- rolled back with one, it protects nothing.
CREATE FUNCTION counterfoil.hold(permit text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    judged record;
BEGIN
    SELECT * INTO judged FROM counterfoil.judge(permit);
    INSERT INTO counterfoil.held (xact, lease, digest, refusal)
    VALUES (pg_current_xact_id(), judged.lease, judged.digest, judged.refusal);
    RETURN judged.refusal IS NULL;
END $$;

-- A header's name and value as length and bytes; raises where HTTP could not carry them.
CREATE FUNCTION counterfoil.framed(header jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    header_name  text;
    header_value text;
    name_bytes   bytea;
    value_bytes  bytea;
BEGIN
    IF jsonb_typeof(header) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a header is no array',
            HINT = 'pass headers as [["name", "value"], ...]';
    END IF;
    IF jsonb_array_length(header) <> 2 OR jsonb_typeof(header -> 0) <> 'string' OR jsonb_typeof(header -> 1) <> 'string' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a header is no name and value',
            HINT = 'pass headers as [["name", "value"], ...]';
    END IF;
    header_name := lower(header ->> 0);
    header_value := header ->> 1;
    IF header_name !~ '^[!#$%&''*+.^_`|~0-9a-z-]+$' OR header_value ~ '[\x01-\x08\x0a-\x1f\x7f]' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a header has characters that HTTP does not carry',
            HINT = 'see that no line breaks are in its value';
    END IF;
    name_bytes := convert_to(header_name, 'UTF8');
    value_bytes := convert_to(header_value, 'UTF8');
    RETURN int4send(octet_length(name_bytes)) || name_bytes || int4send(octet_length(value_bytes)) || value_bytes;
END $$;

-- A receipt as the store reads it: format (1 byte, now 1), when, retention, refusal after it or -1 (8 bytes each), status,
-- number of headers (4 each), for each its name and value with their lengths (4 each), the body, and the first 8 bytes of the
-- SHA-256 of all that. Raises where no receipt can be.
CREATE FUNCTION counterfoil.settlement(
    at bigint, retention_ms bigint, refuse_ms bigint, status integer, headers jsonb, body bytea
) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
#variable_conflict use_variable
DECLARE
    written bytea;
BEGIN
    IF status IS NULL OR status NOT BETWEEN 200 AND 599 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'the status is not between 200 and 599',
            HINT = 'pass the status that the application answers';
    END IF;
    headers := coalesce(headers, '[]');
    body := coalesce(body, '');
    IF jsonb_typeof(headers) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'the headers are no array',
            HINT = 'pass headers as [["name", "value"], ...]';
    END IF;
    IF jsonb_array_length(headers) > 100 OR octet_length(headers::text) > 65536 OR octet_length(body) > 16777216 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = 'the receipt is too large',
            HINT = 'at most 100 headers of 64 KiB in all, and a body of 16 MiB';
    END IF;
    written := '\x01'::bytea || int8send(at) || int8send(retention_ms) || int8send(coalesce(refuse_ms, -1))
        || int4send(status) || int4send(jsonb_array_length(headers));
    IF jsonb_array_length(headers) > 0 THEN
        written := written || (SELECT string_agg(counterfoil.framed(h.header), ''::bytea ORDER BY h.place)
            FROM jsonb_array_elements(headers) WITH ORDINALITY AS h (header, place));
    END IF;
    written := written || body;
    RETURN written || substr(sha256(written), 1, 8);
END $$;

-- Writes the receipt in this transaction. Raises what is against it, so that nothing of the transaction commits.
CREATE FUNCTION counterfoil.settle(permit text, status integer, headers jsonb, body bytea) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    judged record;
    now_ms bigint;
BEGIN
    SELECT * INTO judged FROM counterfoil.judge(permit);
    IF judged.refusal IS NOT NULL THEN
        PERFORM counterfoil.refuse(judged.refusal, judged.digest);
    END IF;
    PERFORM counterfoil.be_durable();
    now_ms := counterfoil.clock();
    UPDATE counterfoil.record AS r
    SET version = r.version + 1, state = 3, expires_at = now_ms + r.retention_ms,
        settlement = counterfoil.settlement(now_ms, r.retention_ms, r.refuse_ms, status, headers, body)
    WHERE r.id = judged.row_id;
    UPDATE counterfoil.held AS h SET settled = true
    WHERE h.xact = pg_current_xact_id() AND h.lease = judged.lease AND h.refusal IS NULL;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA counterfoil FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA counterfoil FROM PUBLIC;
