// Package credential says as whom we call an upstream, and keeps that from
// being seen by anyone else.
//
// A configuration names secrets, it never holds them: a Reference is resolved
// when the credential is needed, into a Secret that no formatter prints. A
// Broker opens one Session for one operation; the session gives the header for
// each leg of it and forgets what it held when the operation ends.
//
// Nothing here falls back. A credential that is declared and does not resolve
// fails the operation before anything is sent; a caller without a grant is not
// served with anybody else's.
package credential
