package local

import "strconv"

// migrations bring the tables from one version to the next, in order. Those that were
// published never change. Times are nanoseconds since 1970, 0 for none.
var migrations = [][]string{{
	`PRAGMA application_id = ` + strconv.Itoa(applicationID),

	`CREATE TABLE session (id TEXT PRIMARY KEY, parent TEXT REFERENCES session (id), at INTEGER NOT NULL,
		title TEXT NOT NULL, created INTEGER NOT NULL) STRICT`,
	`CREATE INDEX session_parent ON session (parent)`,

	// body is JSON: see host.EncodeBody.
	`CREATE TABLE record (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, n INTEGER NOT NULL,
		time INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (session, n)) STRICT`,
	`CREATE TRIGGER record_update BEFORE UPDATE ON record
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,
	// REPLACE deletes without a trigger.
	`CREATE TRIGGER record_insert BEFORE INSERT ON record
		WHEN EXISTS (SELECT 1 FROM record WHERE session = NEW.session AND n = NEW.n)
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,

	`CREATE TABLE blob (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, name TEXT NOT NULL,
		data BLOB NOT NULL, PRIMARY KEY (session, name)) STRICT`,

	`CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, definition BLOB NOT NULL,
		time INTEGER NOT NULL, PRIMARY KEY (server, tool)) STRICT`,

	// data is a host.Grant as JSON; the times in the columns count.
	`CREATE TABLE grant_ (id TEXT PRIMARY KEY, created INTEGER NOT NULL, expires INTEGER NOT NULL,
		revoked INTEGER NOT NULL, data BLOB NOT NULL) STRICT`,
	`CREATE INDEX grant_created ON grant_ (created, id)`,

	`CREATE TABLE audit (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, session TEXT NOT NULL, record INTEGER NOT NULL,
		event TEXT NOT NULL, kind TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, why TEXT NOT NULL,
		arguments TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL) STRICT`,
	`CREATE TRIGGER audit_update BEFORE UPDATE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_delete BEFORE DELETE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_insert BEFORE INSERT ON audit
		WHEN NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM audit)
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	// head is the number and the hash of the last entry.
	`CREATE TABLE audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL, hash BLOB NOT NULL) STRICT`,
}}
