package gate

// Sweep lets tests ring the alarm.
func (g *Gate) Sweep() { g.sweep() }

// RenderArguments is what a question shows of arguments.
var RenderArguments = renderArguments

// Redact is what the record keeps of arguments when it keeps no text.
var Redact = redact

// StopAlarm leaves ringing to Sweep.
func (g *Gate) StopAlarm() { g.clock.stop() }

// Meters is how many callers and servers the budget remembers.
func (g *Gate) Meters() int {
	g.budget.mu.Lock()
	defer g.budget.mu.Unlock()
	return len(g.budget.meters)
}
