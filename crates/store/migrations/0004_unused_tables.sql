-- Outputs and descriptions are kept in files. Nothing ever read or wrote these tables.

DROP TABLE outputs;
DROP TABLE descriptions;
