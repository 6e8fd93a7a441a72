-- One text for SQLite and Postgres: TEXT and BIGINT only, times in milliseconds since the epoch, JSON as text,
-- yes and no as 1 and 0. What is sorted by is compared byte by byte: COLLATE "C" becomes BINARY for SQLite.

CREATE TABLE changes (
    kind     TEXT PRIMARY KEY,
    revision BIGINT NOT NULL
);
INSERT INTO changes (kind, revision) VALUES
    ('custom_tools', 0), ('grants', 0), ('trust', 0), ('tokens', 0);

CREATE TABLE custom_tools (
    id                TEXT PRIMARY KEY,
    name              TEXT COLLATE "C" NOT NULL UNIQUE,
    description       TEXT NOT NULL,
    version           TEXT NOT NULL,
    command           TEXT NOT NULL,
    args              TEXT NOT NULL,
    working_dir       TEXT,
    env               TEXT NOT NULL,
    input_schema      TEXT NOT NULL,
    output_schema     TEXT,
    timeout_ms        BIGINT NOT NULL DEFAULT 30000,
    max_retries       BIGINT NOT NULL DEFAULT 0,
    retry_delay_ms    BIGINT NOT NULL DEFAULT 1000,
    pool_size         BIGINT NOT NULL DEFAULT 1,
    keep_alive        BIGINT NOT NULL DEFAULT 1 CHECK (keep_alive IN (0, 1)),
    status            TEXT NOT NULL DEFAULT 'inactive' CHECK (status IN ('active', 'inactive', 'error')),
    last_health_check BIGINT,
    health_status     TEXT NOT NULL DEFAULT 'unknown'
                      CHECK (health_status IN ('healthy', 'degraded', 'unhealthy', 'unknown')),
    error_message     TEXT,
    tags              TEXT NOT NULL,
    metadata          TEXT NOT NULL,
    annotations       TEXT,
    permissions       TEXT,
    sandbox           TEXT,
    aliases           TEXT NOT NULL,
    content_hash      TEXT NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    revision          BIGINT NOT NULL
);

CREATE TABLE calls (
    id            TEXT COLLATE "C" PRIMARY KEY,
    at_ms         BIGINT NOT NULL,
    client        TEXT NOT NULL,
    agent         TEXT NOT NULL,
    session       TEXT,
    token         TEXT,
    tool          TEXT NOT NULL,
    tool_version  TEXT,
    tool_hash     TEXT,
    argument_hash TEXT,
    transport     TEXT,
    protocol      TEXT,
    outcome       TEXT,
    error         TEXT,
    duration_us   BIGINT NOT NULL,
    output_bytes  BIGINT NOT NULL
);
CREATE INDEX calls_by_time ON calls (at_ms, id);
CREATE INDEX calls_by_tool ON calls (tool, at_ms, id);

CREATE TABLE grants (
    id           TEXT PRIMARY KEY,
    tool         TEXT COLLATE "C" NOT NULL,
    content_hash TEXT,
    what         TEXT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE INDEX grants_by_tool ON grants (tool);

CREATE TABLE trust (
    path  TEXT COLLATE "C" PRIMARY KEY,
    kind  TEXT NOT NULL CHECK (kind IN ('project', 'entry')),
    since BIGINT NOT NULL
);

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    scopes     TEXT NOT NULL,
    agent      TEXT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    last_used  BIGINT,
    revoked_at BIGINT
);

CREATE TABLE outputs (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    bytes      BIGINT NOT NULL,
    lines      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX outputs_by_time ON outputs (created_at);

CREATE TABLE descriptions (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX descriptions_by_time ON descriptions (created_at);
