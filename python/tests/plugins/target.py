#!/usr/bin/env python3
"""A target that writes the ids of the rows it gets into a file."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

args = argparse.ArgumentParser()
args.add_argument("--config", type=pathlib.Path)
config = json.loads(args.parse_args().config.read_text())

with pathlib.Path(config["path"]).open("a") as out:
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "RECORD":
            out.write(f"{message['record']['id']}\n")
            out.flush()
        elif message["type"] == "STATE":
            print(json.dumps(message["value"]), flush=True)
