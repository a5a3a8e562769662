#!/usr/bin/env bash
# Runs the benchmark of demo/demo.yaml against two servers on this machine: a
# local recogniser and an emulated vendor. Needs bin/ and testdata/demo: use
# "make demo". Whatever it starts it stops, however it ends.
set -euo pipefail
cd "$(dirname "$0")/.."

manifest=$PWD/testdata/demo/manifest.yaml
out=runs/demo-$(date +%Y%m%d-%H%M%S)
logs=$(mktemp -d)
pids=()

# start NAME COMMAND… runs a command in a process group of its own, so that it
# can be stopped with all its children. $started is its process.
start() {
	local name=$1
	shift
	set -m
	"$@" </dev/null >"$logs/$name.out" 2>"$logs/$name.err" &
	set +m
	started=$!
	pids+=("$started")
}

# alive PID reports whether anything of its group is left.
alive() { kill -0 -- "-$1" 2>/dev/null; }

# The last started stops first: a run must end before its servers do, or it would
# record their end as a provider's failure.
stop_all() {
	trap '' INT TERM
	local i n
	for ((n = ${#pids[@]} - 1; n >= 0; n--)); do
		kill -TERM -- "-${pids[n]}" 2>/dev/null || true
		for ((i = 0; i < 80; i++)); do # 8 s: a server may take 5 s to stop
			alive "${pids[n]}" || break
			sleep 0.1
		done
		kill -KILL -- "-${pids[n]}" 2>/dev/null || true
		wait "${pids[n]}" 2>/dev/null || true
	done
}

finish() {
	local code=$? file
	stop_all
	if [ "$code" -ne 0 ]; then
		for file in "$logs"/*.err; do
			[ -s "$file" ] && { echo "demo: --- $(basename "$file" .err) said:" && tail -n 20 "$file"; } >&2
		done
		echo "demo: failed (exit code $code); its servers are gone, so start again with make demo" >&2
	fi
	rm -rf "$logs"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# url NAME PID waits for the line "listening URL" of a server and sets $url.
url() {
	local i
	for ((i = 0; i < 300; i++)); do
		url=$(sed -n 's/^listening //p' "$logs/$1.out" | head -n 1)
		[ -z "$url" ] || return 0
		kill -0 "$2" 2>/dev/null || break
		sleep 0.1
	done
	echo "demo: $1 does not listen" >&2
	exit 1
}

for file in bin/sttlocal bin/sttbench "$manifest"; do
	[ -e "$file" ] || { echo "demo: $file is missing: run make demo" >&2 && exit 1; }
done

start sttlocal bin/sttlocal --listen 127.0.0.1:0
local_pid=$started
start emulator bin/sttbench emulate deepgram --listen 127.0.0.1:0 --final-delay 150ms --script "$manifest"
emulator_pid=$started
url sttlocal "$local_pid"
local_url=$url
url emulator "$emulator_pid"
deepgram_url=$url

config=$(cat demo/demo.yaml)
config=${config//'${LOCAL_URL}'/"$local_url"}
config=${config//'${DEEPGRAM_URL}'/"$deepgram_url"}
config=${config//'${MANIFEST}'/"$manifest"}
printf '%s\n' "$config" >"$logs/config.yaml"

# The emulator takes any key; the user's own must not leave its place.
export DEEPGRAM_API_KEY=any-key-will-do

echo "demo: running, see $out" >&2
mkdir -p runs
set -m # in the background, because a trap has to wait for a foreground command
bin/sttbench run "$logs/config.yaml" --out "$out" </dev/null &
set +m
pids+=($!)
wait $!
echo "demo: results are in $out"
