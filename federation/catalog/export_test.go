package catalog

// SetMaxVanished lowers the bound on vanished tools until undo is called.
func SetMaxVanished(n int) (undo func()) {
	old := maxVanished
	maxVanished = n
	return func() { maxVanished = old }
}
