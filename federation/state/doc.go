// Package state keeps everything durable except the ledger in one bbolt file:
// the catalogue, what upstreams are like, the keys that seal approvals, the
// vault.
//
// One process holds the file. A second one learns within a second who does.
package state
