package records

// migrations bring the tables from one version to the next, in order. Those
// that were published never change. Times
// are seconds since 1970, flags 0 or 1; data is a JSON object with what no query
// searches for.
var migrations = [][]string{{
	`CREATE TABLE clients (id TEXT PRIMARY KEY, dynamic BIGINT NOT NULL, digest TEXT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX clients_digest ON clients (digest)`,
	`CREATE INDEX clients_expires ON clients (expires)`,

	`CREATE TABLE grants (id TEXT PRIMARY KEY, client_id TEXT NOT NULL, subject TEXT NOT NULL, revoked BIGINT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX grants_client ON grants (client_id)`,
	`CREATE INDEX grants_subject ON grants (subject)`,
	`CREATE INDEX grants_expires ON grants (expires)`,

	`CREATE TABLE codes (hash TEXT PRIMARY KEY, grant_id TEXT NOT NULL, taken BIGINT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX codes_expires ON codes (expires)`,

	// family is when the grant expires, gone when the token is as good as
	// absent: at its own expiry or, once it is rotated, at that of the grant.
	`CREATE TABLE refresh_tokens (hash TEXT PRIMARY KEY, grant_id TEXT NOT NULL, successor TEXT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, rotated BIGINT NOT NULL,
		family BIGINT NOT NULL, gone BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX refresh_tokens_gone ON refresh_tokens (gone)`,

	`CREATE TABLE revoked_tokens (id TEXT PRIMARY KEY, expires BIGINT NOT NULL)`,
	`CREATE INDEX revoked_tokens_expires ON revoked_tokens (expires)`,

	// key is a hash of issuer and id, which are as long as strangers like.
	`CREATE TABLE used_ids (key TEXT PRIMARY KEY, expires BIGINT NOT NULL)`,
	`CREATE INDEX used_ids_expires ON used_ids (expires)`,

	// key is a hash of subject, client and resource.
	`CREATE TABLE consents (key TEXT PRIMARY KEY, subject TEXT NOT NULL, client_id TEXT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX consents_subject ON consents (subject)`,
	`CREATE INDEX consents_expires ON consents (expires)`,

	`CREATE TABLE records (kind TEXT NOT NULL, hash TEXT NOT NULL, expires BIGINT NOT NULL, data BYTES NOT NULL,
		PRIMARY KEY (kind, hash))`,
	`CREATE INDEX records_expires ON records (expires)`,

	`CREATE TABLE keys (slot TEXT PRIMARY KEY, id TEXT NOT NULL, created BIGINT NOT NULL, retires BIGINT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,

	`CREATE TABLE users (name TEXT PRIMARY KEY, subject TEXT NOT NULL UNIQUE, created BIGINT NOT NULL, hash TEXT NOT NULL)`,
}, {
	// signed_out counts what ended all sign-ins of a user; it is part of the stamp.
	`ALTER TABLE users ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0`,
	`ALTER TABLE users ADD COLUMN signed_out BIGINT NOT NULL DEFAULT 0`,
}, {
	// Browsers that were signed in before must sign in again.
	`DELETE FROM records WHERE kind = 'login'`,
	`CREATE TABLE sessions (id TEXT PRIMARY KEY, subject TEXT NOT NULL, created BIGINT NOT NULL, used BIGINT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX sessions_subject ON sessions (subject, id)`,
	`CREATE INDEX sessions_expires ON sessions (expires)`,

	`ALTER TABLE grants ADD COLUMN resource TEXT NOT NULL DEFAULT ''`,
	`UPDATE grants SET resource = coalesce(JSON(data) ->> 'resource', '')`,
	`DROP INDEX grants_client`,
	`DROP INDEX grants_subject`,
	`CREATE INDEX grants_client ON grants (client_id, id)`,
	`CREATE INDEX grants_subject ON grants (subject, id)`,
	`CREATE INDEX grants_resource ON grants (resource, id)`,

	// The key of a consent does not tell the resource: people are asked once more.
	`DELETE FROM consents`,
	`ALTER TABLE consents ADD COLUMN resource TEXT NOT NULL DEFAULT ''`,
	`DROP INDEX consents_subject`,
	`CREATE INDEX consents_subject ON consents (subject, key)`,
	`CREATE INDEX consents_client ON consents (client_id, key)`,
	`CREATE INDEX consents_resource ON consents (resource, key)`,
}, {
	`ALTER TABLE clients ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0`,
}, {
	// removed is when a resource was removed, 0 for those that are there: what was granted before stays void
	// if it comes back.
	`CREATE TABLE resources (uri TEXT PRIMARY KEY, created BIGINT NOT NULL, removed BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE TABLE memberships (name TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (name, subject))`,
	`CREATE INDEX memberships_subject ON memberships (subject, name)`,
	// The groups that people of another provider had when they signed in last.
	`CREATE TABLE login_groups (subject TEXT PRIMARY KEY, data TEXT NOT NULL)`,
}, {
	`ALTER TABLE keys ADD COLUMN state TEXT NOT NULL DEFAULT ''`,
}, {
	// See vault. The wrapped data key and the bridge are text.
	`CREATE TABLE data_keys (id BIGINT PRIMARY KEY, created BIGINT NOT NULL, wrapped TEXT NOT NULL, bridge TEXT NOT NULL)`,
	`CREATE TABLE sealing (current BIGINT NOT NULL, done BIGINT NOT NULL)`,
	`INSERT INTO sealing (current, done) VALUES (0, 0)`,
}, {
	// A user without a hash was invited, and cannot sign in; hash here is that of the secret in the link.
	`CREATE TABLE invitations (subject TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, expires BIGINT NOT NULL)`,
}, {
	// stamp is the Client.Stamp, which is never empty.
	`ALTER TABLE clients ADD COLUMN stamp TEXT NOT NULL DEFAULT '0'`,
}}
