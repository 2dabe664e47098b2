"""Writes fnmatch.json: patterns, texts, and what Python's fnmatch.fnmatchcase
says of each pair. Run it in this folder: python3 corpus.py
"""

import fnmatch
import json
import random

TEXTS = [
    "", "a", "b", "A", "ab", "abc", "aXbXc", "dev:tap-a-to-target-b", "dev:tap_b", "a.b", "a+b", "a b", "a\nb", "\n",
    "\t", "a\\b", "\\", "a%b", "%", "a_b", "_", "[", "]", "[a]", "[!a]", "!", "^", "-", "a-c", "*", "?", "é", "éé", "🦆",
    "日本", "e\u0301", "ß", "(", "a(b)", "{x}", "$", "a|b", "&&", "~~", "--", "d", "z", "0", "9", ":", "a" * 40,
]
PATTERNS = [
    "", "*", "**", "?", "??", "???", "a", "a*", "*a", "*a*", "a?c", "a*c", "*:*", "dev:*", "dev:tap-*-to-*", "a.b", "a+b",
    "a\nb", "*\n*", "a\\b", "\\*", "*\\*", "\\", "a%b", "%", "a_b", "_", "[", "]", "[]", "[]]", "[!]]", "[]a]", "[!]a]",
    "[a", "[!", "[!]", "[]-a]", "[a-c]", "[!a-c]", "[c-a]", "[!c-a]", "[a-]", "[-a]", "[!-a]", "[a\\]", "[\\]", "[^a]",
    "[^]", "[!^]", "[!!]", "[!!a]", "[[]", "[[]a]", "[a-c-e]", "[a-c-]", "[--a]", "[---]", "[a--]", "[a-a]", "[b-a-c]",
    "[b-ac-z]", "[z-ab-c]", "[A-Za-z]", "[é]", "[!é]", "[à-ü]", "?é", "[🦆]", "[日-本]", "[本-日]", "[&&]", "[~~]", "[||]",
    "[a&&b]", "[a||b]", "a**b", "a*b*c*", "*[!a]*", "[*]", "[?]", "[[-]]", "[%-+]", "[+--]", "[!%--]", "(", "a(b)", "{x}",
    "$", "^", "a|b", "[a-c]*[!x]", "*a*a*a*a*a*b", "[0-9]", "[!0-9]", "[:alpha:]", "[[:alpha:]]", "\t", "?\n?", "[\n]",
]


def main() -> None:
    """Ask Python of every pair, and of some random ones."""
    rng = random.Random(1)
    alphabet = "ab-!]^[*?\\é\n"
    patterns = list(PATTERNS)
    for _ in range(1500):
        patterns.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))))
    texts = list(TEXTS)
    for _ in range(60):
        texts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 5))))
    out = []
    for p in dict.fromkeys(patterns):
        hits = [i for i, t in enumerate(texts) if fnmatch.fnmatchcase(t, p)]
        out.append([p, hits])
    with open("fnmatch.json", "w", encoding="utf-8") as f:
        f.write('{"texts": ' + json.dumps(texts) + ',\n"patterns": [\n')
        f.write(",\n".join(json.dumps(o, separators=(",", ":")) for o in out))
        f.write("\n]}\n")


main()
