-- A grant belongs to one tool of one origin: a file's absolute path, or `registered`. What was granted to a bare name is
-- granted to nobody.

DELETE FROM grants;
ALTER TABLE grants ADD COLUMN origin TEXT COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX grants_by_tool;
CREATE INDEX grants_by_tool ON grants (tool, origin);
