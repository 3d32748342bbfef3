package secrets

// Quick makes an encrypted store stretch its passphrase but a little.
func Quick(s Store) {
	if f, ok := s.(*file); ok {
		if v, ok := f.vault.(*ageVault); ok {
			v.work = 10
		}
	}
}
