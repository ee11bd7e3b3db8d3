// Package control is everything an operator can do to a gateway, as one
// interface with two ways to reach it: Local works on a Gateway in this
// process, Dial talks to the daemon that holds the state, through a socket that
// only the daemon's own user can open.
//
// Whoever can open the socket could edit the configuration as well, so what
// comes through it is the operator's and needs no token.
package control
