-- The schema of a MySQL / MariaDB store, version 1, in the database that is current. `counterfoil migrate` applies it; it can
-- be read, reviewed and applied by hand as well (then add the row
-- `INSERT INTO counterfoil_migration (version, applied_at) SELECT 1, now_ms FROM counterfoil_clock`). A server commits each
-- of these statements alone, so all of them can be repeated.
--
-- No rule of a record's life stands here. The procedures judge guards (absence, version together with lease id, a limit in
-- time, a quarantine that is the one the caller decided under) and nothing else; what is written was decided before.

DELIMITER $$

CREATE TABLE IF NOT EXISTS counterfoil_migration (
    version    INT PRIMARY KEY,
    applied_at BIGINT NOT NULL
) ENGINE = InnoDB $$

-- The one clock: milliseconds since 1970. Everything that is judged by time reads it here, so a test can replace it. Taken
-- from UTC, so that neither a time zone nor its summer time has a say.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW counterfoil_clock AS
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000 AS now_ms $$

-- One row: what is true of the store as a whole.
CREATE TABLE IF NOT EXISTS counterfoil_store (
    one     TINYINT PRIMARY KEY,
    id      VARCHAR(64) CHARACTER SET ascii NOT NULL,
    born_at BIGINT NOT NULL
) ENGINE = InnoDB $$

INSERT IGNORE INTO counterfoil_store (one, id, born_at)
SELECT 1, MD5(CONCAT(UUID(), RAND(), CONNECTION_ID())), now_ms FROM counterfoil_clock $$

-- One row: claims that would execute and cannot be shown to be younger become unknown. Every claim locks it, shared, so that
-- none is under way when a quarantine begins.
CREATE TABLE IF NOT EXISTS counterfoil_quarantine (
    one       TINYINT PRIMARY KEY,
    before_ms BIGINT
) ENGINE = InnoDB $$

INSERT IGNORE INTO counterfoil_quarantine (one, before_ms) VALUES (1, NULL) $$

-- One row: the longest span from a completion to the end of what it promises, in milliseconds.
CREATE TABLE IF NOT EXISTS counterfoil_promise (
    one        TINYINT PRIMARY KEY,
    longest_ms BIGINT NOT NULL
) ENGINE = InnoDB $$

INSERT IGNORE INTO counterfoil_promise (one, longest_ms) VALUES (1, 0) $$

-- One row for each identity. Scope, operation and key are longer together than an index may be here, so the identity is
-- unique by its digest. The truth is `record`; the columns beside it serve guards and indexes and must agree with it.
CREATE TABLE IF NOT EXISTS counterfoil_record (
    -- The order of making, for lists.
    id           BIGINT AUTO_INCREMENT PRIMARY KEY,
    digest       BINARY(32) NOT NULL,
    scope        BLOB NOT NULL,
    operation    VARBINARY(1024) NOT NULL,
    action_key   VARBINARY(255) NOT NULL,
    -- The guard of every write: both together, never one of them alone.
    version      BIGINT NOT NULL,
    lease        BINARY(16) NOT NULL,
    -- 1 running, 2 unknown, 3 done, 4 spent, 5 unknown because it was answered without a receipt.
    state        SMALLINT NOT NULL,
    -- When the action was first claimed.
    claimed_at   BIGINT NOT NULL,
    -- A claim gives its times as spans, and this is the instant that they count from; null: `record` holds instants.
    counted_from BIGINT,
    -- From when a sweep may change the row; null while it is running or unknown.
    expires_at   BIGINT,
    -- The whole record as versioned bytes with a checksum.
    record       LONGBLOB NOT NULL,
    UNIQUE KEY counterfoil_identity (digest),
    KEY counterfoil_due (expires_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC $$

-- What operators and alarms said of an identity. It outlives the record.
CREATE TABLE IF NOT EXISTS counterfoil_history (
    id     BIGINT AUTO_INCREMENT PRIMARY KEY,
    digest BINARY(32) NOT NULL,
    at     BIGINT NOT NULL,
    kind   VARCHAR(64) CHARACTER SET ascii NOT NULL,
    lease  BINARY(16) NOT NULL,
    who    MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL,
    why    MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL,
    KEY counterfoil_history_of (digest, id)
) ENGINE = InnoDB $$

DROP PROCEDURE IF EXISTS counterfoil_claim $$

-- A claim, in a transaction of its own, or `p_within` the caller's, which stays open and keeps its limit for locks. Where
-- somebody's open transaction is at the identity, it fails with error 1205 after `p_lock_s` seconds, and nothing was written.
--
--   won          written, with the time
--   lost         something else stands: it is returned (or nothing does any more)
--   late         the limit has passed
--   quarantined  the quarantine is not the one that the caller decided under: it is returned, and nothing was written
--   volatile     the server was told that it may lose what it commits
CREATE PROCEDURE counterfoil_claim(
    IN p_digest           BINARY(32),
    IN p_scope            BLOB,
    IN p_operation        VARBINARY(1024),
    IN p_key              VARBINARY(255),
    IN p_expected_version BIGINT,     -- null: nothing may stand
    IN p_expected_lease   BINARY(16),
    IN p_version          BIGINT,
    IN p_lease            BINARY(16),
    IN p_state            SMALLINT,
    IN p_counted          BOOLEAN,    -- the record's times count from the time of this write
    IN p_claimed_at       BIGINT,     -- null: now
    IN p_record           LONGBLOB,
    IN p_limit            BIGINT,     -- null: none
    IN p_quarantine       BIGINT,
    IN p_lock_s           INT,
    IN p_within           BOOLEAN
)
MODIFIES SQL DATA
SQL SECURITY INVOKER
BEGIN
    DECLARE v_outcome VARCHAR(16) CHARACTER SET ascii DEFAULT 'lost';
    DECLARE v_at, v_quarantine, v_id, v_version, v_claimed, v_from, v_expires BIGINT;
    DECLARE v_lease BINARY(16);
    DECLARE v_record LONGBLOB;
    DECLARE v_taken BOOLEAN DEFAULT FALSE;
    DECLARE v_patience INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE CONTINUE HANDLER FOR 1062 SET v_taken = TRUE;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF p_within THEN
            SET SESSION innodb_lock_wait_timeout = v_patience;
        ELSE
            ROLLBACK;
        END IF;
        RESIGNAL;
    END;

    SET SESSION innodb_lock_wait_timeout = COALESCE(p_lock_s, v_patience);
    IF NOT p_within THEN
        START TRANSACTION;
    END IF;
    SELECT q.before_ms INTO v_quarantine FROM counterfoil_quarantine AS q WHERE q.one = 1 LOCK IN SHARE MODE;
    IF p_expected_version IS NOT NULL THEN
        SELECT r.id, r.version, r.lease, r.claimed_at, r.counted_from, r.expires_at, r.record
        INTO v_id, v_version, v_lease, v_claimed, v_from, v_expires, v_record
        FROM counterfoil_record AS r WHERE r.digest = p_digest FOR UPDATE;
    END IF;
    SELECT c.now_ms INTO v_at FROM counterfoil_clock AS c;
    IF @@GLOBAL.innodb_flush_log_at_trx_commit <> 1 THEN
        SET v_outcome = 'volatile';
    ELSEIF NOT (v_quarantine <=> p_quarantine) THEN
        SET v_outcome = 'quarantined';
    ELSEIF v_at > p_limit THEN
        SET v_outcome = 'late';
    ELSEIF p_expected_version IS NULL THEN
        INSERT INTO counterfoil_record
            (digest, scope, operation, action_key, version, lease, state, claimed_at, counted_from, record)
        VALUES (p_digest, p_scope, p_operation, p_key, p_version, p_lease, p_state, COALESCE(p_claimed_at, v_at),
            IF(p_counted, v_at, NULL), p_record);
        IF v_taken THEN
            -- A locking read sees what the insert met, whatever this transaction saw before.
            SELECT r.id, r.version, r.lease, r.claimed_at, r.counted_from, r.expires_at, r.record
            INTO v_id, v_version, v_lease, v_claimed, v_from, v_expires, v_record
            FROM counterfoil_record AS r WHERE r.digest = p_digest LOCK IN SHARE MODE;
        ELSE
            SET v_outcome = 'won';
        END IF;
    ELSEIF v_version = p_expected_version AND v_lease = p_expected_lease THEN
        UPDATE counterfoil_record AS r
        SET r.version = p_version, r.lease = p_lease, r.state = p_state, r.expires_at = NULL,
            r.claimed_at = COALESCE(p_claimed_at, v_at), r.counted_from = IF(p_counted, v_at, NULL), r.record = p_record
        WHERE r.id = v_id AND r.version = p_expected_version AND r.lease = p_expected_lease;
        SET v_outcome = 'won';
    END IF;
    IF p_within THEN
        SET SESSION innodb_lock_wait_timeout = v_patience;
    ELSEIF v_outcome = 'won' THEN
        COMMIT;
    ELSE
        ROLLBACK;
    END IF;
    IF v_outcome <> 'lost' THEN
        SET v_version = NULL, v_record = NULL;
    END IF;
    -- With the id of the store that this really is.
    SELECT v_outcome, v_at, v_quarantine, v_version, v_lease, v_claimed, v_from, v_expires, v_record, s.id
    FROM counterfoil_store AS s WHERE s.one = 1;
END $$

DROP PROCEDURE IF EXISTS counterfoil_put $$

-- Every other write: completions, renewals, releases, what operators say. Outcomes as above.
CREATE PROCEDURE counterfoil_put(
    IN p_digest           BINARY(32),
    IN p_scope            BLOB,
    IN p_operation        VARBINARY(1024),
    IN p_key              VARBINARY(255),
    IN p_expected_version BIGINT,     -- null: nothing may stand
    IN p_expected_lease   BINARY(16),
    IN p_version          BIGINT,
    IN p_lease            BINARY(16),
    IN p_state            SMALLINT,
    IN p_claimed_at       BIGINT,
    IN p_expires_at       BIGINT,
    IN p_record           LONGBLOB,   -- null: the row goes
    IN p_limit            BIGINT,     -- null: none
    IN p_span             BIGINT,     -- how long a receipt is promised, in milliseconds
    IN p_note_at          BIGINT,
    IN p_note_kind        VARCHAR(64) CHARACTER SET ascii,   -- null: no note
    IN p_note_lease       BINARY(16),
    IN p_note_who         MEDIUMTEXT CHARACTER SET utf8mb4,
    IN p_note_why         MEDIUMTEXT CHARACTER SET utf8mb4,
    IN p_lock_s           INT,        -- null: what the session says already
    IN p_within           BOOLEAN
)
MODIFIES SQL DATA
SQL SECURITY INVOKER
BEGIN
    DECLARE v_outcome VARCHAR(16) CHARACTER SET ascii DEFAULT 'lost';
    DECLARE v_at, v_quarantine, v_id, v_version, v_claimed, v_from, v_expires BIGINT;
    DECLARE v_lease BINARY(16);
    DECLARE v_record LONGBLOB;
    DECLARE v_taken BOOLEAN DEFAULT FALSE;
    DECLARE v_patience INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE CONTINUE HANDLER FOR 1062 SET v_taken = TRUE;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF p_within THEN
            SET SESSION innodb_lock_wait_timeout = v_patience;
        ELSE
            ROLLBACK;
        END IF;
        RESIGNAL;
    END;

    SET SESSION innodb_lock_wait_timeout = COALESCE(p_lock_s, v_patience);
    IF NOT p_within THEN
        START TRANSACTION;
    END IF;
    SELECT r.id, r.version, r.lease, r.claimed_at, r.counted_from, r.expires_at, r.record
    INTO v_id, v_version, v_lease, v_claimed, v_from, v_expires, v_record
    FROM counterfoil_record AS r WHERE r.digest = p_digest FOR UPDATE;
    -- After the wait for the row.
    SELECT c.now_ms INTO v_at FROM counterfoil_clock AS c;
    IF v_at > p_limit THEN
        SET v_outcome = 'late';
    ELSEIF p_expected_version IS NULL THEN
        IF v_id IS NULL AND p_record IS NULL THEN
            SET v_outcome = 'won';
        ELSEIF v_id IS NULL THEN
            INSERT INTO counterfoil_record
                (digest, scope, operation, action_key, version, lease, state, claimed_at, expires_at, record)
            VALUES (p_digest, p_scope, p_operation, p_key, p_version, p_lease, p_state, p_claimed_at, p_expires_at,
                p_record);
            IF v_taken THEN
                SELECT r.id, r.version, r.lease, r.claimed_at, r.counted_from, r.expires_at, r.record
                INTO v_id, v_version, v_lease, v_claimed, v_from, v_expires, v_record
                FROM counterfoil_record AS r WHERE r.digest = p_digest LOCK IN SHARE MODE;
            ELSE
                SET v_outcome = 'won';
            END IF;
        END IF;
    ELSEIF v_version = p_expected_version AND v_lease = p_expected_lease THEN
        IF p_record IS NULL THEN
            DELETE FROM counterfoil_record
            WHERE id = v_id AND version = p_expected_version AND lease = p_expected_lease;
        ELSE
            UPDATE counterfoil_record AS r
            SET r.version = p_version, r.lease = p_lease, r.state = p_state, r.claimed_at = p_claimed_at,
                r.counted_from = NULL, r.expires_at = p_expires_at, r.record = p_record
            WHERE r.id = v_id AND r.version = p_expected_version AND r.lease = p_expected_lease;
        END IF;
        SET v_outcome = 'won';
    END IF;
    IF v_outcome = 'won' THEN
        IF p_span > (SELECT s.longest_ms FROM counterfoil_promise AS s WHERE s.one = 1) THEN
            UPDATE counterfoil_promise AS s SET s.longest_ms = GREATEST(s.longest_ms, p_span) WHERE s.one = 1;
        END IF;
        IF p_note_kind IS NOT NULL THEN
            INSERT INTO counterfoil_history (digest, at, kind, lease, who, why)
            VALUES (p_digest, p_note_at, p_note_kind, p_note_lease, p_note_who, p_note_why);
        END IF;
    END IF;
    IF p_within THEN
        SET SESSION innodb_lock_wait_timeout = v_patience;
    ELSEIF v_outcome = 'won' THEN
        COMMIT;
    ELSE
        ROLLBACK;
    END IF;
    IF v_outcome <> 'lost' THEN
        SET v_version = NULL, v_record = NULL;
    END IF;
    SELECT v_outcome, v_at, v_quarantine, v_version, v_lease, v_claimed, v_from, v_expires, v_record;
END $$
