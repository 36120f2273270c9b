-- Intents, version 3 of the schema: what is to be sent once, kept until its outcome is known, and left behind by applications
-- in transactions of their own in this database. In any language:
--
--     SELECT counterfoil.record_intent(name, permit, method, url, headers, body, profile);    -- anywhere before COMMIT
--
-- The role needs this and nothing on the tables. Whoever may call it has `counterfoil relay` send requests with the relay's
-- own secrets.
--
--     GRANT USAGE ON SCHEMA counterfoil TO the_role;
--     GRANT EXECUTE ON FUNCTION counterfoil.record_intent(text, text, text, text, jsonb, bytea, text) TO the_role;

-- The truth is `intent`, and `version` the guard of every write, which must agree with it. No rule of an intent's life stands
-- here.
CREATE TABLE counterfoil.intent (
    -- The order of making, for lists.
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL UNIQUE,
    version bigint NOT NULL,
    -- From when somebody has to do something; null: only a person may, or nobody has to.
    due_at  bigint,
    -- What `record_intent` was asked for, as a digest; null: it was not made by it.
    asked   bytea,
    -- The whole intent as versioned bytes with a checksum.
    intent  bytea NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX intent_due ON counterfoil.intent (due_at, id) WHERE due_at IS NOT NULL;

-- What `record_intent` was told and no relay has made an intent of yet. A row whose `refused` says why cannot become one; it
-- stays until somebody has mended or deleted it.
CREATE TABLE counterfoil.outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    -- The action that it is a step of: all three, or none.
    scope      bytea,
    operation  bytea,
    key        bytea,
    method     text NOT NULL,
    url        text NOT NULL,
    -- [["name", "value"], ...]
    headers    jsonb NOT NULL,
    body       bytea NOT NULL,
    profile    text NOT NULL,
    created_at bigint NOT NULL,
    asked      bytea NOT NULL,
    refused    text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX outbox_open ON counterfoil.outbox (id) WHERE refused IS NULL;

-- Leaves an intent behind in this transaction: it is sent once that is committed, and never if it is not. `permit` is the
-- text of the request's `Idempotency-Permit` whose step it is, or null. True: it is written. False: the same stands already.
-- A name that stands for something else raises CF005, so that nothing of the transaction commits; parameters are compared
-- byte for byte, headers as JSON.
CREATE FUNCTION counterfoil.record_intent(
    name text, permit text, method text, url text, headers jsonb, body bytea, profile text
) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    parent record;
    wanted bytea;
    stands bytea;
    made   bigint;
    known  boolean;
BEGIN
    headers := coalesce(headers, '[]');
    body := coalesce(body, '');
    IF name IS NULL OR octet_length(name) > 255 OR name !~ '^[ -~]+$' OR btrim(name) = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'the name is no intent''s name',
            HINT = 'pass 1 to 255 printable ASCII characters, such as order-1234/mail';
    END IF;
    IF method IS NULL OR url IS NULL OR profile IS NULL OR jsonb_typeof(headers) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'method, url or profile is null, or the headers are no array',
            HINT = 'pass headers as [["name", "value"], ...]';
    END IF;
    IF octet_length(method) > 64 OR octet_length(url) > 8192 OR octet_length(profile) > 255
        OR octet_length(headers::text) > 65536 OR octet_length(body) > 8388608 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = 'the request is too large',
            HINT = 'at most 8 KiB of URL, 64 KiB of headers, and a body of 8 MiB';
    END IF;
    PERFORM counterfoil.framed(h.header) FROM jsonb_array_elements(headers) AS h (header);
    IF permit IS NULL THEN
        SELECT NULL::bytea AS scope, NULL::bytea AS operation, NULL::bytea AS key INTO parent;
    ELSE
        SELECT r.scope, r.operation, r.key INTO parent FROM counterfoil.record AS r
        WHERE permit ~ '^cf1-[0-9a-f]{32}-[0-9a-f]{64}$'
            AND r.digest = decode(substr(permit, 38, 64), 'hex') AND r.lease = decode(substr(permit, 5, 32), 'hex');
        IF parent.key IS NULL THEN
            PERFORM counterfoil.refuse('CF003', NULL);
        END IF;
    END IF;
    PERFORM counterfoil.be_durable();
    SELECT sha256(convert_to(jsonb_build_array(encode(parent.scope, 'hex'), encode(parent.operation, 'hex'),
        encode(parent.key, 'hex'), method, url, headers, encode(sha256(body), 'hex'), profile)::text, 'UTF8')) INTO wanted;
    LOOP
        INSERT INTO counterfoil.outbox
            (name, scope, operation, key, method, url, headers, body, profile, created_at, asked)
        VALUES (name, parent.scope, parent.operation, parent.key, method, url, headers, body, profile, counterfoil.clock(),
            wanted)
        ON CONFLICT DO NOTHING RETURNING id INTO made;
        IF made IS NOT NULL THEN
            -- A relay may have made an intent of an earlier row.
            SELECT i.asked INTO stands FROM counterfoil.intent AS i WHERE i.name = name;
            known := FOUND AND stands IS NOT NULL;
            EXIT;
        END IF;
        SELECT o.asked INTO stands FROM counterfoil.outbox AS o WHERE o.name = name;
        known := FOUND;
        -- Else a relay took it in between.
        EXIT WHEN known;
    END LOOP;
    IF NOT known THEN
        -- Where the intent is not ours to compare, the relay does.
        RETURN true;
    END IF;
    IF stands IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION USING ERRCODE = 'CF005', MESSAGE = 'the intent''s name stands for another one',
            HINT = 'a name is one action: give another action another name, such as order-1234/mail';
    END IF;
    DELETE FROM counterfoil.outbox AS o WHERE o.id = made;
    RETURN false;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA counterfoil FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA counterfoil FROM PUBLIC;
