//go:build !unix

package safefile

// syncFolder has nothing to do: folders are not synced here.
func syncFolder(string) error { return nil }
