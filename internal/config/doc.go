// Package config finds out where the state is kept: it turns flags, the
// environment, a Meltano project and a URI into [chstate.Options], and says for
// each setting where its value came from.
//
// # Sources, strongest first
//
//  1. Command line flags, then the parts of a URI that was given as the flag
//     --uri: what was typed for this one command beats what lies around.
//  2. MELTANO_STATE_BACKEND_CLICKHOUSE_<NAME> and MELTANO_STATE_BACKEND_URI,
//     from the environment (over which Meltano lays the env: of meltano.yml),
//     then from the project's .env.
//  3. state_backend in meltano.yml and the files of its include_paths.
//  4. The URI's query parameters, then its parts.
//  5. CLICKHOUSE_<NAME>, which may belong to the target: with a notice.
//  6. The defaults of [Settings].
//
// 2 and 3 are Meltano's own rules, read from its code; testdata/projects.json
// holds projects with the answers that Meltano gave, and the tests compare. An
// empty value stops the search there, as it does in Meltano, and then counts as
// not given.
//
// Within Meltano none of this runs: [FromAddon] takes Meltano's answer.
//
// # Secrets
//
// A password, a token and a URI that carries one appear in no [Value], notice
// or error. Where a part of a malformed URI may be a piece of a password, the
// error does not print that part.
package config
