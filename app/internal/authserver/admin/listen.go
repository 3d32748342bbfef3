package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// IsSocket reports whether an address is a unix socket, "unix:PATH", which needs no key.
func IsSocket(address string) bool { return strings.HasPrefix(address, unixPrefix) }

// CheckAddress refuses what is neither "unix:PATH" nor a port of loopback.
func CheckAddress(address string) error {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if path == "" {
			return errors.New("write unix:PATH")
		}
		return nil
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil || !oauth.LoopbackHost(name) {
		return errors.New("must be unix:PATH, or HOST:PORT on loopback, such as 127.0.0.1:9001")
	}
	return nil
}

// Listen listens at an address that CheckAddress takes. A unix socket is for the user of this
// process alone; one that a process left behind which ended is replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return listenUnix(ctx, path)
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

// listenUnix makes the socket under another name first, so that it is never there with the
// permissions that files usually have.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := checkStale(ctx, path); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".s") // for its owner alone
	if err != nil {
		return nil, fmt.Errorf("making the socket: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is empty
	made := filepath.Join(folder, "s")
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, fmt.Errorf("making the socket: %w", err)
	}
	socket := &unixListener{UnixListener: ln.(*net.UnixListener), path: path}
	socket.SetUnlinkOnClose(false)
	err = errors.Join(os.Chmod(made, 0o600), os.Rename(made, path))
	if err == nil {
		socket.info, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the socket: %w", err), ln.Close())
	}
	return socket, nil
}

// checkFolder refuses a folder where others could put a socket in the place of ours.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("folder of the socket: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users can write to %s; choose a folder that only you can write to", folder)
	}
	return nil
}

// checkStale refuses a path where another process listens, or where there is something else.
func checkStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking for the socket: %w", err)
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // it was only to see whether it is there
		return fmt.Errorf("another process listens at %s", path)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("looking whether another process listens at %s: %w", path, err)
}

// A unixListener tells of each connection which user is at the other end, as its remote
// address, and takes none of other users.
type unixListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

// Accept implements net.Listener.
func (l *unixListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		user, ok := peer(conn)
		if !ok {
			_ = conn.Close() // it may not come in
			continue
		}
		return &unixConn{UnixConn: conn, user: user}, nil
	}
}

// Close removes the socket, unless another process has put its own there.
func (l *unixListener) Close() error {
	err := l.UnixListener.Close()
	if info, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(info, l.info) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

type unixConn struct {
	*net.UnixConn
	user peerAddr
}

// RemoteAddr implements net.Conn.
func (c *unixConn) RemoteAddr() net.Addr { return c.user }

// A peerAddr names the user at the other end, such as "uid 1000".
type peerAddr string

func (peerAddr) Network() string  { return "unix" }
func (a peerAddr) String() string { return string(a) }

// Self is the actor that acts on the records without the API.
func Self() string { return uidName(os.Getuid()) }

func uidName(uid int) string { return fmt.Sprintf("uid %d", uid) }

const (
	requestTime = 10 * time.Second // to read a request
	answerTime  = time.Minute      // to answer it
	graceTime   = 5 * time.Second  // to end those that are under way
	maxHeader   = 16 << 10
)

// Serve serves h until ctx ends, and closes ln.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: answerTime, MaxHeaderBytes: maxHeader,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the administration: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = server.Close()
	}
	<-served //nolint:errcheck // it was shut down
	return err
}
