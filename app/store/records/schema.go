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
}}
