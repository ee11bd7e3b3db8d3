// Package cli is the gatehouse command: it reads arguments, asks the control
// interface, and prints.
//
// Results go to standard output, everything else to standard error. A command
// ends with 0 when it did what was asked, 1 when that was refused or failed, 2
// when it was called wrongly. Text that came from a remote server is escaped
// before it reaches a terminal.
package cli
