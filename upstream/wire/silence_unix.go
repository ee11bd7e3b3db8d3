//go:build unix

package wire

import (
	"errors"
	"net"
	"syscall"
)

// silence returns a function that looks, without waiting and without taking
// anything, whether nothing has arrived on conn: no byte, no end, no error.
func silence(conn net.Conn) func() bool {
	never := func() bool { return false }
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return never
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return never
	}
	var peeked error
	var b [1]byte
	peek := func(fd uintptr) bool {
		_, _, peeked = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	}
	return func() bool {
		err := raw.Read(peek)
		return err == nil && (errors.Is(peeked, syscall.EAGAIN) || errors.Is(peeked, syscall.EWOULDBLOCK))
	}
}
