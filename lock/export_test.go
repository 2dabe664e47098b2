package lock

import "github.com/chstate/chstate/internal/lockrules"

// RulesWithout gives rules of which some are switched off.
func RulesWithout(off lockrules.Off) Rules { return Rules{off: off} }
