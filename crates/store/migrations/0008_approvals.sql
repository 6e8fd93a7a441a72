-- A person's yes to one call. `asked_hash` finds the question again, `run_hash` says what may run; both are keyed. `shown` has
-- the arguments with secrets covered; they are clear only in `edited`, until that was used.

CREATE TABLE approvals (
    id          TEXT COLLATE "C" PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'edited', 'rejected', 'responded', 'expired',
                'executing', 'used', 'interrupted')),
    asked_hash  TEXT NOT NULL,
    run_hash    TEXT NOT NULL,
    project     TEXT,
    agent       TEXT NOT NULL,
    token       TEXT,
    client      TEXT NOT NULL,
    tool        TEXT NOT NULL,
    content     TEXT NOT NULL,
    shown       TEXT NOT NULL,
    note        TEXT,
    edited      TEXT,
    allowed     TEXT NOT NULL,
    words       TEXT,
    life_ms     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    decided_at  BIGINT,
    decided_by  TEXT,
    decided_how TEXT,
    runner      TEXT,
    runs_until  BIGINT,
    call        TEXT,
    ended_at    BIGINT,
    revision    BIGINT NOT NULL
);
CREATE UNIQUE INDEX approvals_open ON approvals (asked_hash)
    WHERE state IN ('pending', 'approved', 'edited', 'rejected', 'responded');
CREATE INDEX approvals_by_change ON approvals (revision);
CREATE INDEX approvals_by_state ON approvals (state, created_at, id);
INSERT INTO changes (kind, revision) VALUES ('approvals', 0);
