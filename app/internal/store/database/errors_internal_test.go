package database

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// What an operator is told says what to do, and shows no values of the driver.
func TestPlain(t *testing.T) {
	t.Parallel()
	secret := errors.New("postgres://ada:secret@db.internal")
	for want, err := range map[string]error{
		"lookup db.internal: no such host":                 fmt.Errorf("%w: %w", secret, &net.DNSError{Err: "no such host", Name: "db.internal", IsNotFound: true}),
		"dial tcp: refused":                                fmt.Errorf("%w: %w", secret, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}),
		"PostgreSQL answers 53100: its disk is full; make": fmt.Errorf("%w: %w", secret, &pgconn.PgError{Code: "53100", Message: "secret"}),
		"PostgreSQL answers 25006: it can only be read":    &pgconn.PgError{Code: "25006", Detail: "secret"},
		"database fails (*errors.errorString)":             secret,
	} {
		got := new(Options).plain(err)
		if !strings.HasPrefix(got.Error(), want) || strings.Contains(got.Error(), "secret") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Of the errors that PostgreSQL answers with, those about the whole database are told apart.
func TestCannotWrite(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"53100": true, "25006": true, "58030": true, "23505": false, "40001": false, "57P01": false} {
		if got := cannotWrite(fmt.Errorf("doing: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	if cannotWrite(errors.New("another")) || cannotWrite(nil) {
		t.Error("another error is taken for one of writing")
	}
}
