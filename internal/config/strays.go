package config

import "strings"

// strays gives a notice for each name that looks like one of our settings and
// is none: Meltano passes over it, so the value that somebody gave there has no effect.
func (r *resolution) strays(p *project, environ map[string]string) {
	known := map[string]bool{}
	for _, s := range table {
		known[s.Key()], known[s.Env()] = true, true
	}
	look := func(names []string, prefix string, where func(name string) string, meant func(Setting) string) {
		for _, name := range names {
			if own, ok := strings.CutPrefix(name, prefix); ok && own != "" && !known[name] && namedSafely.MatchString(own) {
				r.notice("%s in %s is no setting and has no effect: perhaps %s is meant", name, where(name), meant(likely(own)))
			}
		}
	}
	ourEnv := envName(ourKeys)
	in := func(place string) func(string) string { return func(string) string { return place } }
	look(sortedKeys(environ), ourEnv, in("the environment"), Setting.Env)
	look(sortedKeys(p.dotenv), ourEnv, in(dotenvName), Setting.Env)
	look(sortedKeys(p.env), ourEnv, in("the env of "+meltanoYML), Setting.Env)
	look(sortedKeys(p.flat), ourKeys, func(name string) string { return p.from[name] }, Setting.Key)
}

// likely gives the setting that was probably meant by a name.
func likely(name string) Setting {
	name = strings.ToLower(name)
	s, ok := find(name) // with another prefix
	if !ok {
		s, _ = find(nearest(name))
	}
	return s
}
