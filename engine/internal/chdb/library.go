// Package chdb calls libchdb, ClickHouse's engine as a shared library, through
// purego: no cgo, so no C compiler is needed to build.
//
// It binds the library's own C interface rather than going through chdb-go,
// whose package init panics where the library is missing (so not even --help
// would work) and which passes statements as C strings, cut at a NUL byte. The
// functions used here take lengths.
package chdb

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a loaded libchdb. A process loads one and keeps it.
type Library struct {
	connect   func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn func(conn unsafe.Pointer)

	query  queryFunc
	stream queryFunc

	streamFetch  func(conn, result unsafe.Pointer) unsafe.Pointer
	streamCancel func(conn, result unsafe.Pointer)

	destroy     func(result unsafe.Pointer)
	buffer      func(result unsafe.Pointer) unsafe.Pointer
	length      func(result unsafe.Pointer) uintptr
	errorText   func(result unsafe.Pointer) string
	storageRows func(result unsafe.Pointer) uint64
	storageSize func(result unsafe.Pointer) uint64
	writtenRows func(result unsafe.Pointer) uint64
	writtenSize func(result unsafe.Pointer) uint64
	resultRows  func(result unsafe.Pointer) uint64
}

// queryFunc is chdb_query_with_params_n and its streaming twin: connection,
// statement, its length, format, its length, then four arrays (names, their
// lengths, values, their lengths) and how many parameters they hold.
type queryFunc func(conn, query unsafe.Pointer, queryLen uintptr, format unsafe.Pointer, formatLen uintptr,
	names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer

// Load opens the library at path and resolves what this package calls.
func Load(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("cannot load %s: %w; is it libchdb %s for %s/%s?", path, err, Version, runtime.GOOS, runtime.GOARCH)
	}
	lib := &Library{}
	var missing []error
	bind := func(fn any, symbol string) {
		if _, err := purego.Dlsym(handle, symbol); err != nil {
			missing = append(missing, fmt.Errorf("no function %s", symbol))
			return
		}
		purego.RegisterLibFunc(fn, handle, symbol)
	}
	var setSignalHandlers func(enabled int32)
	bind(&lib.connect, "chdb_connect")
	bind(&lib.closeConn, "chdb_close_conn")
	bind(&lib.query, "chdb_query_with_params_n")
	bind(&lib.stream, "chdb_stream_query_with_params_n")
	bind(&lib.streamFetch, "chdb_stream_fetch_result")
	bind(&lib.streamCancel, "chdb_stream_cancel_query")
	bind(&lib.destroy, "chdb_destroy_query_result")
	bind(&lib.buffer, "chdb_result_buffer")
	bind(&lib.length, "chdb_result_length")
	bind(&lib.errorText, "chdb_result_error")
	bind(&lib.resultRows, "chdb_result_rows_read")
	bind(&lib.storageRows, "chdb_result_storage_rows_read")
	bind(&lib.storageSize, "chdb_result_storage_bytes_read")
	bind(&lib.writtenRows, "chdb_result_rows_written")
	bind(&lib.writtenSize, "chdb_result_bytes_written")
	bind(&setSignalHandlers, "chdb_set_signal_handlers_enabled")
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s is not the libchdb %s that is needed: %w", path, Version, errors.Join(missing...))
	}
	if err := keepGoSignals(func() { setSignalHandlers(0) }); err != nil {
		return nil, err
	}
	return lib, nil
}
