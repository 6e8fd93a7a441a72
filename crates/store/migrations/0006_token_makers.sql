-- Which token a token was made with: it ends with that one.
ALTER TABLE tokens ADD COLUMN made_by TEXT;
