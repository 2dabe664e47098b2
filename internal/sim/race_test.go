//go:build race

package sim_test

func init() { defaultSeeds = 100 } // each takes ten times as long
