#!/usr/bin/env bash
# The whole path, once: Meltano moves orders from CSV files with a published tap
# and a published target, and keeps its bookmark in ClickHouse through the add-on.
# Run it with `make demo`, which builds what it needs. Everything it makes is in
# .demo/; the environments in there are kept for the next time, nothing else is.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/.demo
project=$work/project
python=${PYTHON:-python3}
state_id=demo:tap-spreadsheets-to-target-csv
began=$SECONDS
engine_pid=

export MELTANO_SEND_ANONYMOUS_USAGE_STATS=false PIP_DISABLE_PIP_VERSION_CHECK=1
# Settings of the caller's own must not lead the demo to another server.
for name in $(compgen -e | grep -E '^(MELTANO_STATE_BACKEND|CLICKHOUSE)_' || true); do unset "$name"; done

bold='' dim='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

stop_engine() {
  [ -n "$engine_pid" ] || return 0
  kill "$engine_pid" 2>/dev/null || true
  wait "$engine_pid" 2>/dev/null || true
  engine_pid=
}
trap stop_engine EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# key FILE… names a state of these files' content.
key() { cat "$@" | sha256sum | cut -c 1-16; }

# cached STAMP KEY says whether what STAMP stands for was made from KEY.
cached() { [ -e "$1" ] && [ "$(cat "$1")" = "$2" ]; }

make_project() {
  # Only the plugins' environments stay from the last time.
  if [ -d "$project" ]; then
    find "$project" -mindepth 1 -maxdepth 1 ! -name .meltano -exec rm -rf {} +
    [ ! -d "$project/.meltano" ] ||
      find "$project/.meltano" -mindepth 1 -maxdepth 1 ! -name extractors ! -name loaders -exec rm -rf {} +
  fi
  rm -rf "$work/engine"
  mkdir -p "$project/in" "$project/out"
  cp "$root/demo/project/meltano.yml" "$project/"
}

install_meltano() {
  local want
  want=$({ "$python" -V && cat "$root"/requirements/{demo,constraints}.txt; } | key -)
  if ! cached "$work/venv.key" "$want"; then
    show pip install -r requirements/demo.txt
    rm -rf "$work/venv" "$work"/*.key
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet -r "$root/requirements/demo.txt"
    echo "$want" >"$work/venv.key"
  fi
}

# sources prints the content that the add-on is built from.
sources() {
  find "$root" \( -name .demo -o -name .git -o -name '.venv*' -o -name bin -o -path "$root/engine" \) -prune -o \
    -type f \( -name '*.go' -o -name 'go.*' -o -name '*.py' -o -name pyproject.toml \) -print0 | sort -z | xargs -0 cat
}

install_addon() {
  local want
  want=$(sources | key -)
  if ! cached "$work/addon.key" "$want"; then
    show pip install .
    mkdir -p "$work/tmp" # what an interrupted build leaves behind goes with the rest
    TMPDIR="$work/tmp" "$work/venv/bin/pip" install --quiet "$root"
    rm -rf "$work/tmp"
    echo "$want" >"$work/addon.key"
  fi
}

install_plugins() {
  local want
  want=$(key "$work/venv.key" "$project/meltano.yml")
  if ! cached "$work/plugins.key" "$want"; then
    show meltano install
    rm -rf "$project/.meltano"
    "$work/venv/bin/meltano" install >"$work/install.log" 2>&1 || {
      cat "$work/install.log" >&2
      fail "meltano install failed"
    }
    echo "$want" >"$work/plugins.key"
  fi
}

start_engine() {
  local password
  password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
  : >"$work/engine.out"
  # In a process group of its own: Ctrl-C is for Meltano first, which still wants
  # to write to the engine when it ends.
  set -m
  CHSTATE_ENGINE_PASSWORD=$password "$root/bin/chstate-engine" serve --data "$work/engine" --listen 127.0.0.1:0 \
    --user demo --parent-pid $$ >"$work/engine.out" 2>"$work/engine.log" &
  engine_pid=$!
  set +m
  for _ in $(seq 300); do
    grep -q '^ready ' "$work/engine.out" && break
    kill -0 "$engine_pid" 2>/dev/null || break
    sleep 0.1
  done
  grep '^ready ' "$work/engine.out" || {
    cat "$work/engine.log" >&2
    fail "the local engine did not start"
  }
  url=$(awk '/^ready / {print $2}' "$work/engine.out")
  # Neither Meltano, chstate nor curl gets the password on its command line.
  (
    umask 077
    echo "MELTANO_STATE_BACKEND_URI=clickhouse://demo:$password@${url#http://}/demo" >"$project/.env"
    echo "machine 127.0.0.1 login demo password $password" >"$work/netrc"
  )
}

meltano_run() {
  show meltano run tap-spreadsheets target-csv
  "$work/venv/bin/meltano" run tap-spreadsheets target-csv >"$work/$1.log" 2>&1 || {
    cat "$work/$1.log" >&2
    fail "meltano run failed"
  }
  sed -n 's/^.*\(Using .* state backend\|No state was found\|Starting incremental\|Skipping \/\|Processed [0-9]\|Incremental state has been updated\|Run completed\)/  \1/p' "$work/$1.log" |
    sed "s|$project/||g" | uniq
  echo "  -- written by this run:"
  sed 's/^/  /' "$project/out/orders.csv" | cut -d, -f1-3
}

sql() {
  show "curl $url --data-binary '$1'"
  curl --silent --show-error --fail-with-body --netrc-file "$work/netrc" "$url" --data-binary "$1"
}

mkdir -p "$work"
step "A Meltano project with the add-on, as a user installs it"
make_project
install_meltano
install_addon
cd "$project"
install_plugins
"$work/venv/bin/pip" list 2>/dev/null | grep -i -E '^meltano'

step "A local ClickHouse, in place of your server"
start_engine

step "First run: three orders are there"
cp "$root/demo/orders/monday.csv" in/
meltano_run first

step "Second run: two more came in"
# The tap's bookmark counts whole seconds: the new file has to be a later one's.
while [ "$(date +%s)" -le "$(stat -c %Y in/monday.csv 2>/dev/null || stat -f %m in/monday.csv)" ]; do sleep 0.2; done
cp "$root/demo/orders/tuesday.csv" in/
meltano_run second
[ "$(cut -d, -f1 out/orders.csv | tr -d '\r' | paste -sd, -)" = order_id,4,5 ] || fail "the second run should have taken orders 4 and 5 alone"
echo "  The bookmark worked: only the new rows were taken."

step "The state, as chstate shows it"
show chstate list
"$root/bin/chstate" list | tee "$work/list.out"
[ "$(cat "$work/list.out")" = "$state_id" ] || fail "chstate list should show $state_id"
show chstate get "$state_id" --format pretty
"$root/bin/chstate" get "$state_id" --format pretty

step "The same, as SQL shows it"
sql "SELECT state_id, completed_state, updated_at FROM meltano.state FINAL FORMAT Vertical"

printf '\nDone in %d s. The project is in .demo/project, the logs beside it; the engine is stopped, so chstate finds no server there now.\n' $((SECONDS - began))
