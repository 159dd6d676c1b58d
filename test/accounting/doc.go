// Package accounting tests the books of a real operator: against a real API server and in real
// databases, with operators and database servers that are killed, stopped and replaced.
package accounting
