package tasks

// migrations bring the tables from one version to the next, in order. Those that were
// published never change. Times are microseconds since 1970, flags 0 or 1. Text of others
// and JSON are bytes: a text of PostgreSQL cannot hold U+0000, and its jsonb neither that
// nor every number. Owners and what callers are counted by are digests, which are short.
var migrations = [][]string{{
	// seq is the order of the creation. expires is the largest number for a task that is
	// kept without end. lease is when the last lease ends, 0 once it was released. losses
	// counts the leases that were neither ended nor released. parts is the number of the
	// next row of task_parts.
	`CREATE TABLE tasks (seq NUMBERED NOT NULL, id TEXT NOT NULL UNIQUE, owner BYTES NOT NULL, limit_key BYTES NOT NULL,
		tool BYTES NOT NULL, status TEXT NOT NULL, ended BIGINT NOT NULL, message BYTES NOT NULL,
		created BIGINT NOT NULL, updated BIGINT NOT NULL, expires BIGINT NOT NULL, ttl BIGINT NOT NULL, poll BIGINT NOT NULL,
		questions BYTES NOT NULL, answers BYTES NOT NULL, result BYTES , error BYTES NOT NULL,
		repeatable BIGINT NOT NULL, token BIGINT NOT NULL, lease BIGINT NOT NULL, losses BIGINT NOT NULL, parts BIGINT NOT NULL)`,
	`CREATE INDEX tasks_owner ON tasks (owner, seq)`,
	`CREATE INDEX tasks_expires ON tasks (expires)`,
	`CREATE INDEX tasks_lease ON tasks (lease) WHERE ended = 0`,

	// How many tasks there are, by limit_key, and by no bytes for all.
	`CREATE TABLE task_counts (limit_key BYTES PRIMARY KEY, n BIGINT NOT NULL)`,

	// What a worker needs, until the task ends: n is 0 for the call, and counts the
	// writes of records, each of which is a JSON array.
	`CREATE TABLE task_parts (task BIGINT NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE, n BIGINT NOT NULL,
		data BYTES NOT NULL, PRIMARY KEY (task, n))`,

	// The last changes, for those that watch an SQLite file.
	`CREATE TABLE task_changes (n NUMBERED NOT NULL, id TEXT NOT NULL)`,
}}
