-- The project that a call was made in; nothing where it was made in none, or before that was remembered.

ALTER TABLE calls ADD COLUMN project TEXT;
