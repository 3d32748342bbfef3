package cli

// LockFile locks a file until it is closed, for servers of tests.
var LockFile = lockFile
