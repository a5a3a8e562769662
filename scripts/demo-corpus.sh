#!/usr/bin/env bash
# Makes the demo corpus in testdata/demo: manifest.yaml and the audio of the
# sentences in demo/sentences.tsv. The recordings of LibriVox that come with
# Debian's pocketsphinx-testdata are referenced where they are installed;
# LIBRIVOX_DIR names another place. The same inputs give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SENTENCES=demo/sentences.tsv
readonly OUT=testdata/demo
readonly LIBRIVOX=${LIBRIVOX_DIR:-/usr/share/pocketsphinx/test/data/librivox}

# Recordings that the small local recogniser understands passably; the demo
# streams them through it in real time.
readonly LOCAL_RECORDINGS=" 0890 0920 0930 "

fail() {
	echo "demo-corpus: $*" >&2
	exit 1
}

for command in flite espeak-ng sox; do
	command -v "$command" >/dev/null || fail "$command is missing: run make deps"
done
[ -e "$LIBRIVOX/transcription" ] || fail "no recordings in $LIBRIVOX: run make deps or set LIBRIVOX_DIR"

# inputs prints what the corpus depends on: texts, this script, tools, place.
inputs() {
	cat "$SENTENCES" "$0" "$LIBRIVOX/transcription"
	echo "$LIBRIVOX"
	dpkg-query -W flite espeak-ng sox 2>/dev/null || { espeak-ng --version && sox --version; }
}
stamp=$(inputs | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d ' ' -f 1)
[ "$(cat "$OUT/.stamp" 2>/dev/null || true)" = "$stamp" ] && [ -e "$OUT/manifest.yaml" ] && exit 0

# Everything is made in a folder of its own and moved into place at the end.
mkdir -p testdata
work=$(mktemp -d testdata/.demo.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/demo" "$work/parts"
manifest=$work/demo/manifest.yaml

# item ID AUDIO REFERENCE RECORDING TAG,TAG… adds an item to the manifest.
item() {
	case "$3" in
	'' | *[!a-z\'\ ]*) fail "$1: the reference may have lower-case words only: $3" ;;
	esac
	printf '  - id: "%s"\n    audio: "%s"\n    reference: "%s"\n    recording: "%s"\n    tags: [%s]\n' \
		"$1" "$2" "$3" "$4" "${5//,/, }" >>"$manifest"
}

# speak SPEAKER TEXT FILE writes 16 kHz mono speech. Dither and its random
# numbers are off (-D, -R), so that the file is the same each time.
speak() {
	local engine voice rate
	IFS=: read -r engine voice rate <<<"$1"
	case "$engine" in
	flite) flite -voice "$voice" -t "$2" -o "$work/parts/raw.wav" ;;
	espeak) espeak-ng -v "$voice" -s "${rate:-150}" -w "$work/parts/raw.wav" "$2" ;;
	*) fail "unknown speaker $1" ;;
	esac
	sox -D -R -G "$work/parts/raw.wav" -b 16 -c 1 -r 16000 "$3" gain -n -3
}

# render SPEAKER TEXT FILE speaks a text whose pauses are marked.
render() {
	local rest=$2 part parts=()
	sox -D -R -n -b 16 -c 1 -r 16000 "$work/parts/pause.wav" trim 0 1.5
	while [ -n "$rest" ]; do
		part=${rest%% | *}
		[ "$part" = "$rest" ] && rest= || rest=${rest#* | }
		[ ${#parts[@]} -eq 0 ] || parts+=("$work/parts/pause.wav")
		speak "$1" "$part" "$work/parts/${#parts[@]}.wav"
		parts+=("$work/parts/${#parts[@]}.wav")
	done
	sox -D -R "${parts[@]}" "$3"
}

printf '# Made by scripts/demo-corpus.sh; do not edit.\ndataset: demo\nversion: "1"\nlanguage: en\nitems:\n' >"$manifest"

# One line of the transcription: <s> words </s> (name)
while read -r line; do
	name=${line##*(}
	name=${name%)*}
	text=${line#<s> }
	text=${text%% </s>*}
	[ -e "$LIBRIVOX/$name.wav" ] || fail "$LIBRIVOX/$name.wav is missing"
	number=${name##*-}
	tags=librivox
	case "$LOCAL_RECORDINGS" in *" $number "*) tags+=,local ;; esac
	item "librivox-$number" "$LIBRIVOX/$name.wav" "$text" "${name%-*}" "$tags"
done <"$LIBRIVOX/transcription"

while IFS=$'\t' read -r id speaker format tags say reference; do
	case "$id" in '' | '#'*) continue ;; esac
	[ -n "$reference" ] || fail "$SENTENCES: $id does not have six columns"
	speech=$work/parts/speech.wav
	render "$speaker" "$say" "$speech"
	file=$id.wav
	case "$format" in
	wav) sox -D -R "$speech" "$work/demo/$file" ;;
	wav8k) sox -D -R -G "$speech" -r 8000 "$work/demo/$file" ;;
	stereo) sox -D -R "$speech" -c 2 "$work/demo/$file" ;;
	cut) sox -D -R "$speech" "$work/demo/$file" reverse silence 1 0.01 1% reverse ;;
	flac) file=$id.flac && sox -D -R "$speech" "$work/demo/$file" ;;
	mp3) file=$id.mp3 && sox -D -R "$speech" -C 64 "$work/demo/$file" ;;
	*) fail "$SENTENCES: $id: unknown format $format" ;;
	esac
	item "$id" "$file" "$reference" "$id" "synthetic,$tags"
done <"$SENTENCES"

echo "$stamp" >"$work/demo/.stamp"
rm -rf "$OUT"
mv "$work/demo" "$OUT"
echo "demo-corpus: $(grep -c '^  - id:' "$OUT/manifest.yaml") items in $OUT" >&2
