// Package caller says who is calling: it turns the bearer token of a request
// into the caller the operator declared, or into nobody.
//
// There is no anonymous caller. A token is known by its digest, by a secret
// reference, or by the signature of the configured issuer.
package caller
