package admin

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peer names the user at the other end of a socket; false if it may not come in: the
// permissions of the socket are for one user, and root needs none.
func peer(conn *net.UnixConn) (peerAddr, bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", false
	}
	var found *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { found, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return "", false
	}
	uid := int(found.Uid)
	return peerAddr(uidName(uid)), uid == 0 || uid == os.Getuid()
}
