// Package table is the meeting point of those who work offers out and those who read them: one published snapshot in memory,
// read without a lock, with notifications that a slow subscriber cannot hold up.
package table
