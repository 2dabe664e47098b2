//go:build race

package lock_test

func init() { smallRows = 1 } // each state takes ten times as long
