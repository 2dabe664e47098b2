package statedoc

// Shape says what a state's text looks like at the top, for those who must
// tell a Singer state from what people paste in its place.
type Shape struct {
	// Wrapped: there is a "singer_state" key, as Meltano's states have.
	Wrapped bool
	// NoBookmarks: what stands under "singer_state" is null or an object without keys.
	NoBookmarks bool
	// Halves: the keys are "completed" and "partial" or one of them, as in the
	// table and in Meltano's export, and nothing else.
	Halves bool
	// Bare: there is a "bookmarks" key at the top: the wrapper was left off.
	Bare bool
}

// ShapeOf reads the top of a state. Errors as Check's.
func ShapeOf(text []byte) (Shape, error) {
	n, err := parseObject(text)
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Bare: n.find("bookmarks") != nil}
	if singer := n.find("singer_state"); singer != nil {
		s.Wrapped = true
		s.NoBookmarks = singer.kind == null || singer.kind == object && len(singer.members) == 0
	}
	for _, m := range n.members {
		if m.name != "completed" && m.name != "partial" {
			return s, nil
		}
	}
	s.Halves = len(n.members) > 0
	return s, nil
}
