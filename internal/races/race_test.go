//go:build race && unix

package races

func init() { raceDetector = true }
