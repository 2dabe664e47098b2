package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads meltano.yml and the files that its include_paths name.
func (p *project) readYAML() error {
	p.flat, p.from, p.env = map[string]any{}, map[string]string{}, map[string]*string{}
	main := filepath.Join(p.root, meltanoYML)
	patterns, err := p.addFile(main)
	if err != nil {
		return err
	}
	seen := map[string]bool{main: true}
	for _, pattern := range patterns {
		names, err := globProject(p.root, pattern)
		if err != nil {
			return settingsError(&badValue{fmt.Sprintf("include_paths has %s: %s", quote(pattern), err),
				"name files inside the project"}, meltanoYML, err)
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			if _, err := p.addFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsSettings tells the keys of meltano.yml that matter here; what stands
// under plugins or environments, whatever its name, is no setting of Meltano's.
func holdsSettings(key string) bool {
	first, _, _ := strings.Cut(key, ".")
	return first == "state_backend" || first == "ff" || first == "default_environment"
}

// addFile lays a file over what was read, and gives its include_paths.
func (p *project) addFile(name string) (includes []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fileError(name, yamlTrouble(err))
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	top := follow(doc.Content[0])
	if top.Kind != yaml.MappingNode {
		return nil, fileError(name, errors.New("it is not a mapping of names to values"))
	}
	label := filepath.Base(name)
	if rel, err := filepath.Rel(p.root, name); err == nil {
		label = filepath.ToSlash(rel)
	}
	found, err := entries(top, 0)
	if err != nil {
		return nil, fileError(name, err)
	}
	for _, e := range found {
		switch {
		case e.key == "env":
			if err := p.addEnv(e.node); err != nil {
				return nil, fileError(name, err)
			}
		case e.key == "include_paths" && e.node.Kind == yaml.SequenceNode:
			for _, n := range e.node.Content {
				includes = append(includes, follow(n).Value)
			}
		case holdsSettings(e.key):
			if err := p.flatten(e.key, e.node, label, 0); err != nil {
				return nil, fileError(name, err)
			}
		}
	}
	return includes, nil
}

// yamlTrouble keeps the line of a YAML error and drops what it quotes, which may be a secret.
func yamlTrouble(err error) error {
	if line := regexp.MustCompile(`line \d+`).FindString(err.Error()); line != "" {
		return errors.New("it is not YAML, at " + line)
	}
	return errors.New("it is not YAML")
}

func (p *project) addEnv(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return errors.New("its env is not a mapping of names to values")
	}
	found, err := entries(n, 0)
	if err != nil {
		return err
	}
	for _, e := range found {
		text := ""
		switch raw := scalar(e.node).(type) {
		case nil:
			p.env[e.key] = nil
			continue
		case bool: // as Python writes it
			text = map[bool]string{true: "True", false: "False"}[raw]
		case notText:
			text = raw.written
		case *yaml.Node:
			return fmt.Errorf("%s in its env is a list or a mapping", e.key)
		default:
			text = fmt.Sprint(raw)
		}
		p.env[e.key] = &text
	}
	return nil
}

// flatten notes the values below a key by their dotted names; a name written
// flat (state_backend.uri:) comes out the same, and what stands later wins.
func (p *project) flatten(key string, n *yaml.Node, file string, depth int) error {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.flat[key], p.from[key] = scalar(n), file
		return nil
	}
	if depth > deepest {
		return errTooDeep
	}
	found, err := entries(n, 0)
	if err != nil {
		return err
	}
	for _, e := range found {
		if err := p.flatten(key+"."+e.key, e.node, file, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// deepest bounds what aliases can do, which may refer to what they stand in.
// No setting is named by more than three parts.
const deepest = 10

var errTooDeep = errors.New("its state_backend is nested too deep")

type entry struct {
	key  string
	node *yaml.Node
}

// entries gives a mapping's entries, with aliases followed and << merged in
// where the mapping has no such key of its own. A key that stands twice is an
// error, as it is to Meltano.
func entries(n *yaml.Node, depth int) ([]entry, error) {
	if depth > deepest {
		return nil, errTooDeep
	}
	var own, merged []entry
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := follow(n.Content[i]), follow(n.Content[i+1])
		if key.ShortTag() == "!!merge" {
			sources := []*yaml.Node{v}
			if v.Kind == yaml.SequenceNode {
				sources = v.Content
			}
			for _, source := range sources {
				if source = follow(source); source.Kind != yaml.MappingNode {
					continue
				}
				found, err := entries(source, depth+1)
				if err != nil {
					return nil, err
				}
				merged = append(merged, found...)
			}
			continue
		}
		if has[key.Value] {
			return nil, fmt.Errorf("the key %s stands twice, again at line %d", quote(key.Value), key.Line)
		}
		own = append(own, entry{key.Value, v})
		has[key.Value] = true
	}
	for _, e := range merged {
		if !has[e.key] {
			own = append(own, e)
			has[e.key] = true
		}
	}
	return own, nil
}

func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// notText marks a value that YAML read as something other than the text that
// was written, so that it cannot serve as text: 0123, 0x1F, 1.50.
type notText struct{ written string }

var yamlWhole = regexp.MustCompile(`^[-+]?[0-9]+$`)

// scalar gives what Meltano's YAML 1.2 reader makes of a node: nil, text, bool,
// json-like numbers; notText and lists as they are.
func scalar(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return n
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		if yamlWhole.MatchString(n.Value) { // 0123 is 123 in YAML 1.2
			if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
				if strconv.FormatInt(i, 10) != n.Value {
					return notText{strconv.FormatInt(i, 10)}
				}
				return i
			}
		}
		return notText{n.Value}
	case "!!float":
		return notText{n.Value}
	default:
		return n.Value
	}
}

var variable = regexp.MustCompile(`(\\)?\$(?:\{([\p{L}\p{N}_]+)\}|([A-Z][A-Z0-9_]*))`)

// expand puts variables into a value of meltano.yml: ${NAME} and $NAME, the
// latter in capitals only; \$NAME stays $NAME, and one that is not set gives
// nothing, or, with Meltano's ff.strict_env_var_mode, its name as missing.
func expand(text string, variables map[string]string, strict bool) (expanded, missing string) {
	var b strings.Builder
	last := 0
	for _, m := range variable.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[last:m[0]])
		last = m[1]
		if m[2] >= 0 { // escaped: without its backslash
			b.WriteString(text[m[3]:m[1]])
			continue
		}
		var name string
		if m[4] >= 0 {
			name = text[m[4]:m[5]]
		} else {
			name = text[m[6]:m[7]]
		}
		v, ok := variables[name]
		if !ok && strict && missing == "" {
			missing = name
		}
		b.WriteString(v)
	}
	b.WriteString(text[last:])
	return b.String(), missing
}
