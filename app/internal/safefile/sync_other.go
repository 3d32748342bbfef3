//go:build !unix

package safefile

// SyncFolder has nothing to do: folders are not synced here.
func SyncFolder(string) error { return nil }
