-- Who could change a project when yes was said to it, as JSON; nothing where yes was said before that was remembered.

ALTER TABLE trust ADD COLUMN ownership TEXT;
