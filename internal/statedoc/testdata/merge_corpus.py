"""Write merge_corpus.jsonl by running Meltano's own merge().

Usage, with a Python that has Meltano installed:

    python internal/statedoc/testdata/merge_corpus.py > internal/statedoc/testdata/merge_corpus.jsonl

Each line is one case: the texts of the two states, and the text of what
Meltano makes of them (json.dumps without spaces), or the class of what it raises.
The random cases use a fixed seed, so that a newer Meltano shows as a diff.
"""

from __future__ import annotations

import json
import random
import sys

from meltano.core.utils import merge

SEED = 20260501
RANDOM_CASES = 300

# Few names, so that the two sides meet; odd ones among them.
NAMES = [
    "singer_state",
    "bookmarks",
    "users",
    "s3://b/2026.01.02/a b%20c.csv",
    "C:\\x.csv",
    "",
    "010",
    "10",
    "null",
    "\u017elu\u0165",
    "\U0001f680",
    'quote"',
    "tab\t",
    "a/b~c",
]
SCALARS = [
    None,
    True,
    False,
    0,
    -1,
    9007199254740993,
    1234567890123456789,
    18446744073709551615,
    123456789012345678901234567890,
    1.0,
    0.1,
    1e22,
    -0.0,
    3e-07,
    1712345678.123456,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "2026-01-01T00:00:00Z",
    "\u8eca\u7ad9",
    'a"b\\c\n',
]

BY_HAND = [
    ("{}", "{}"),
    ('{"a":{}}', '{"a":"x"}'),  # an empty dict leaves the scalar
    ('{"a":{}}', '{"a":null}'),
    ('{"a":{}}', "{}"),
    ('{"a":{"b":1}}', '{"a":"x"}'),  # TypeError
    ('{"a":{"b":1}}', '{"a":null}'),
    ('{"a":{"b":1}}', '{"a":[]}'),
    ('{"a":{"b":1}}', '{"a":1.5}'),
    ('{"a":{"b":{"c":1}}}', '{"a":"x"}'),  # AttributeError
    ('{"a":{"b":{}}}', '{"a":[]}'),
    ('{"a":1}', '{"a":{"b":1}}'),  # a scalar replaces a dict
    ('{"a":null}', '{"a":{"b":1}}'),
    ('{"a":[1,2]}', '{"a":[3]}'),  # lists are replaced
    ('{"a":[{"x":1}]}', '{"a":[{"y":1}]}'),
    ('{"b":1,"a":2}', '{"a":0,"c":0,"b":0}'),  # the stored order stays
    ('{"z":1,"y":2}', '{"a":0}'),  # new keys go to the end
    ('{"s":{"id":1},"s":{"id":2}}', "{}"),  # duplicates: the last counts
    ("{}", '{"s":{"id":1},"t":0,"s":{"id":2}}'),  # … at the place of the first
    ('{"s":{"b":1},"s":2,"s":{"c":3}}', '{"s":{"a":0}}'),
    ('{"a":[{"k":1,"k":2}]}', '{"b":{"k":1,"k":{"l":1,"l":2}}}'),
    ('{"\\u0061":1}', '{"a":{"b":1}}'),  # names meet by what they stand for
    (' { "a" : [ ] , "b" : { } } ', '\t{\r\n"a":0}\n'),
]


def random_value(rng: random.Random, depth: int) -> object:
    """Give an object at most depth levels deep, a short list or a scalar."""
    what = rng.choices(("object", "list", "scalar"), (6 if depth else 0, 1, 3))[0]
    if what == "object":
        return random_object(rng, depth - 1)
    if what == "list":
        return [random_value(rng, 0) for _ in range(rng.randrange(3))]
    return rng.choice(SCALARS)


def random_object(rng: random.Random, depth: int) -> dict[str, object]:
    """Give an object, now and then one with more names than a scan is made for."""
    widths, weights = (0, 1, 2, 3, 4, 24), (10, 10, 10, 20, 10, 2 if depth == 1 else 0)
    width = rng.choices(widths, weights)[0]
    names = rng.sample(NAMES, min(width, len(NAMES))) + [f"stream_{i}" for i in range(width - len(NAMES))]
    return {name: random_value(rng, depth) for name in names}


def compact(value: object) -> str:
    """Write a value without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def outcome(src: str, dest: str) -> dict[str, str]:
    """Say what Meltano makes of merging src into dest."""
    try:
        return {"merged": compact(merge(json.loads(src), json.loads(dest)))}
    except (TypeError, AttributeError) as error:
        return {"raises": type(error).__name__}


def main() -> None:
    """Write every case as a line."""
    rng = random.Random(SEED)
    cases = list(BY_HAND)
    cases.extend((compact(random_object(rng, 2)), compact(random_object(rng, 2))) for _ in range(RANDOM_CASES))
    for src, dest in cases:
        line = {"src": src, "dest": dest, **outcome(src, dest)}
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
