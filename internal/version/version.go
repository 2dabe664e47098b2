// Package version holds the one place where the version is written. The
// Python add-on's build reads the constant below from this file.
package version

// Version is the version of the library, the tool and the add-on, without a
// leading "v". A build may set it with
//
//	-ldflags "-X github.com/chstate/chstate/internal/version.Version=1.2.3"
var Version = "0.1.0"
