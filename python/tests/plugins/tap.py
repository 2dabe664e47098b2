#!/usr/bin/env python3
"""A tap that reads the rows of a file from where its bookmark says it was."""

from __future__ import annotations

import argparse
import json
import pathlib


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


args = argparse.ArgumentParser()
args.add_argument("--config", type=pathlib.Path)
args.add_argument("--state", type=pathlib.Path)
options = args.parse_args()
config = json.loads(options.config.read_text())
state = json.loads(options.state.read_text()) if options.state else {}
last = state.get("bookmarks", {}).get("rows", {}).get("id", 0)

say(type="SCHEMA", stream="rows", schema={"properties": {"id": {"type": "integer"}}}, key_properties=["id"])
for line in pathlib.Path(config["path"]).read_text().split():
    if int(line) > last:
        last = int(line)
        say(type="RECORD", stream="rows", record={"id": last})
for n in range(int(config["states"])):
    say(type="STATE", value={"bookmarks": {"rows": {"id": last}, "more": {"n": n}}})
say(type="STATE", value={"bookmarks": {"rows": {"id": last}}})
