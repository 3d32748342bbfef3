// Package archtest holds rules of the repository that no compiler checks: which
// package may import which, how long a file may be, where a protocol date may
// stand, what the modules may depend on. Its test runs them over the whole
// repository and fails the build.
//
// Files are read and parsed here, not listed by "go list", so that the test
// cache sees every file and never answers for a tree that has changed.
//
// table.go is the only place of the import rules. A choice behind a rule that changes is recorded in
// docs/decisions.
package archtest
