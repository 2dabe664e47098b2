package statedoc

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCheck is what each state costs on its way in and out.
func BenchmarkCheck(b *testing.B) {
	var w strings.Builder
	w.WriteString(`{"singer_state":{"bookmarks":{"s":{}`)
	for i := 0; w.Len() < 1<<20; i++ {
		fmt.Fprintf(&w, `,"stream_%06d":{"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:%02dZ"}`, i, i%60)
	}
	w.WriteString("}}}")
	text := []byte(w.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(text); err != nil {
			b.Fatal(err)
		}
	}
}
