-- What agents have to do: a list per thread, as JSON. Who writes one forgets those that nobody touched for long.
CREATE TABLE todos (
    thread     TEXT COLLATE "C" PRIMARY KEY,
    list       TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX todos_by_time ON todos (updated_at);
