-- What calls are counted in, where the store is a server; a store that is a file has a second file for that.
-- And of a call: which middleware changed, delayed or refused it, and who decided about it, when and how.

CREATE TABLE counters (
    key      TEXT COLLATE "C" PRIMARY KEY,
    state    TEXT NOT NULL,
    until_ms BIGINT NOT NULL
);
CREATE INDEX counters_by_end ON counters (until_ms);

ALTER TABLE calls ADD COLUMN middleware TEXT;
ALTER TABLE calls ADD COLUMN approver TEXT;
ALTER TABLE calls ADD COLUMN decided_at BIGINT;
ALTER TABLE calls ADD COLUMN decision TEXT;
