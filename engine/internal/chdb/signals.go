package chdb

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// guarded are the signals whose handlers the Go runtime must keep: the faults it
// turns into panics, and SIGURG, with which it preempts goroutines.
var guarded = []syscall.Signal{
	syscall.SIGILL, syscall.SIGABRT, syscall.SIGFPE, syscall.SIGBUS,
	syscall.SIGSEGV, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGURG,
}

// sigactionSize holds a struct sigaction of any C library: 152 bytes in glibc,
// 16 on macOS.
const sigactionSize = 256

// keepGoSignals runs disable, which tells libchdb to install no signal handlers,
// and puts Go's own back: turning libchdb's off resets the same signals to their
// defaults, whoever had set them.
func keepGoSignals(disable func()) error {
	name := "libc.so.6"
	if runtime.GOOS == "darwin" {
		name = "/usr/lib/libSystem.B.dylib"
	}
	libc, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("cannot open the C library %s, needed to keep Go's signal handlers: %w", name, err)
	}
	var sigaction func(sig int32, set, old unsafe.Pointer) int32
	purego.RegisterLibFunc(&sigaction, libc, "sigaction")

	saved := make([][sigactionSize]byte, len(guarded))
	for i, sig := range guarded {
		if sigaction(int32(sig), nil, unsafe.Pointer(&saved[i])) != 0 {
			return fmt.Errorf("cannot read the handler of %v", sig)
		}
	}
	disable()
	for i, sig := range guarded {
		if sigaction(int32(sig), unsafe.Pointer(&saved[i]), nil) != 0 {
			return fmt.Errorf("cannot put the handler of %v back", sig)
		}
	}
	return nil
}
