package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// externalTable is a table that a request brings along, as a file of a form.
type externalTable struct {
	name string
	data []byte
}

// readForm reads a multipart form: its files are external tables, its other
// fields are parameters as if they stood in the URL.
func readForm(r *http.Request, values url.Values) ([]externalTable, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return nil, codeBadArguments.errorf("The form's Content-Type %q has no boundary", r.Header.Get("Content-Type"))
	}
	var tables []externalTable
	form := multipart.NewReader(r.Body, params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return tables, nil
		}
		if err != nil {
			return nil, codeCannotReadAllData.errorf("Cannot read the form: %v", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, codeCannotReadAllData.errorf("Cannot read the form's part %q: %v", part.FormName(), err)
		}
		// A file may have an empty name; what makes it one is that it has any.
		_, disposition, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return nil, codeBadArguments.errorf("A part of the form has no usable Content-Disposition: %v", err)
		}
		if _, isFile := disposition["filename"]; isFile {
			tables = append(tables, externalTable{part.FormName(), data})
		} else {
			values.Add(part.FormName(), string(data))
		}
	}
}

// isForm tells whether the request's body is a multipart form.
func isForm(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data")
}

// createExternal makes the tables, for this connection only.
func (s *Server) createExternal(l *link, tables []externalTable, values url.Values) error {
	for _, t := range tables {
		structure, err := tableStructure(t.name, values)
		if err != nil {
			return err
		}
		if err := l.createTemporary(t.name, structure); err != nil {
			return err
		}
		if len(t.data) == 0 {
			continue
		}
		path, remove, err := s.spool.save(bytes.NewReader(t.data))
		if err != nil {
			return err
		}
		err = l.conn.Exec(fmt.Sprintf("INSERT INTO %s FROM INFILE %s COMPRESSION 'none' FORMAT %s",
			quoteName(t.name), quote(path), firstOf(values.Get(t.name+"_format"), "TabSeparated")))
		remove()
		if err != nil {
			return withoutFile(err, path)
		}
	}
	return nil
}

// tableStructure reads <name>_structure, or makes names _1, _2 … for <name>_types.
func tableStructure(name string, values url.Values) (string, error) {
	if structure := values.Get(name + "_structure"); structure != "" {
		return structure, nil
	}
	types := values.Get(name + "_types")
	if types == "" {
		return "", codeBadArguments.errorf("Neither structure nor types have not been provided for external table %s. Use fields %s_structure or %s_types to do so", name, name, name)
	}
	var columns []string
	depth, start := 0, 0
	for i, c := range types + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			columns = append(columns, fmt.Sprintf("_%d %s", len(columns)+1, strings.TrimSpace(types[start:i])))
			start = i + 1
		}
	}
	return strings.Join(columns, ", "), nil
}

func dropExternal(l *link, tables []externalTable) {
	for _, t := range tables {
		_ = l.conn.Exec("DROP TEMPORARY TABLE IF EXISTS " + quoteName(t.name))
	}
}
