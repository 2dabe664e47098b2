package chstate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cases are the rows of what people reported; each has a test named after it.
var cases = strings.Fields(`
	S01 S03 S04 S05 S06 S08 S09 S10 S12 S13 S14 S15
	I01 I02 I03 I05
	C01 C03 C04 C05 C07 C08 C09 C10
	L01 L02 L04 L05 L06 L08
	N01 N02 N03 N05 N06 N07 N08 N10 N11 N13 N14 N15 N16 N17
	R01 R02 R04 R05 R06 R08 R09 R10 R11 R12 R13`)

var (
	goTest   = regexp.MustCompile(`(?m)^func (Test((?:[SICLNR]\d\d)+)\w*)\(`)
	pyTest   = regexp.MustCompile(`(?m)^def (test_((?:[silcnr]\d\d_)+)\w*)\(`)
	caseName = regexp.MustCompile(`[SICLNR]\d\d`)
	tableRow = regexp.MustCompile(`(?m)^\| ([SICLNR]\d\d) \|(.*)$`)
	testName = regexp.MustCompile("`((?:Test|test_)\\w+)`")
	funcName = regexp.MustCompile(`(?m)^(?:func|def|    def) ((?:Test|test_)\w+)\(`)
)

// TestEveryCaseHasATest: a test somewhere in the tree is named after each case,
// and docs/cases.md has a row for it that names tests that exist.
func TestEveryCaseHasATest(t *testing.T) {
	named, all := map[string][]string{}, map[string]bool{}
	must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "build", "node_modules"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		base := filepath.Base(path)
		if !strings.HasSuffix(base, "_test.go") && (!strings.HasPrefix(base, "test_") || filepath.Ext(base) != ".py") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range funcName.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = true
		}
		for _, m := range append(goTest.FindAllStringSubmatch(string(text), -1), pyTest.FindAllStringSubmatch(string(text), -1)...) {
			for _, c := range caseName.FindAllString(strings.ToUpper(m[2]), -1) {
				named[c] = append(named[c], m[1])
			}
		}
		return nil
	}))
	page, err := os.ReadFile("docs/cases.md")
	must(t, err)
	rows := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2]
	}
	for _, c := range cases {
		if len(named[c]) == 0 {
			t.Errorf("no test is named after %s", c)
		}
		row, ok := rows[c]
		if !ok {
			t.Errorf("docs/cases.md has no row for %s", c)
			continue
		}
		if !slices.ContainsFunc(named[c], func(name string) bool { return strings.Contains(row, "`"+name+"`") }) {
			t.Errorf("docs/cases.md: the row of %s names none of %s", c, named[c])
		}
		for _, m := range testName.FindAllStringSubmatch(row, -1) {
			if !all[m[1]] {
				t.Errorf("docs/cases.md: the row of %s names %s, which is no test", c, m[1])
			}
		}
		delete(rows, c)
	}
	for c := range rows {
		t.Errorf("docs/cases.md has a row for %s, which is no case", c)
	}
}
