package service

import (
	"context"
	"log/slog"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/config"
	"github.com/chstate/chstate/internal/version"
)

// OpenStore makes the store that an init request asks for: the add-on passes
// on what Meltano made of its settings.
func OpenStore(in Init, log *slog.Logger) (Store, error) {
	resolved, err := config.FromAddon(in.URI, in.Settings)
	if err != nil {
		return nil, err
	}
	for _, notice := range resolved.Notices {
		log.Warn(notice)
	}
	opts := resolved.Options
	opts.Command, opts.Version, opts.Logger = in.Command, version.Version, log
	s, err := chstate.Open(context.Background(), opts)
	if err != nil { // a nil *chstate.Store must not become a Store that is not nil
		return nil, err
	}
	return Of(s), nil
}
