#!/usr/bin/env bash
# Fetches everything that is not Go source, at pinned versions, and installs
# the Debian packages that the tests and the demo use. What is there already is
# left alone, so a second call takes a fraction of a second.
#
#   third_party/lib/libonnxruntime.so (.dylib on macOS)   ONNX Runtime
#   third_party/models/silero_vad.onnx                    the VAD model
#
# ONNX Runtime comes from the npm package of sherpa-onnx, which is a tenth of
# the size of Microsoft's own. It is fetched, never redistributed.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SHERPA_VERSION=1.13.8
readonly SILERO_MODULE=github.com/streamer45/silero-vad-go
readonly SILERO_VERSION=v0.2.1 # the version in go.mod
readonly SILERO_SHA256=6b99cbfd39246b6706f98ec13c7c50c6b299181f2474fa05cbc8046acc274396

# The recogniser with its model and recordings, two synthesisers, and one
# audio tool that writes WAV, FLAC and MP3.
readonly DEBIAN_PACKAGES="libpocketsphinx3 pocketsphinx-en-us pocketsphinx-testdata flite espeak-ng sox libsox-fmt-base libsox-fmt-mp3"

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

fail() {
	echo "deps: $*" >&2
	exit 1
}

# digest BITS FILE prints the SHA-2 digest of a file in hexadecimal.
digest() {
	if command -v "sha$1sum" >/dev/null; then
		"sha$1sum" "$2"
	else
		shasum -a "$1" "$2"
	fi | cut -d ' ' -f 1
}

# verify BITS FILE WANT NAME fails unless the digest is the pinned one.
verify() {
	local got
	got=$(digest "$1" "$2")
	[ "$got" = "$3" ] || fail "checksum mismatch for $4: sha$1 is $got, pinned is $3; nothing was installed"
}

# need COMMAND HOW fails with instructions when a command is missing.
need() {
	command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

# scratch makes a folder beside the targets, so that a move into place is
# atomic and an interrupted run leaves nothing half-installed.
scratch() {
	[ -n "$work" ] || { mkdir -p third_party && work=$(mktemp -d third_party/.tmp.XXXXXX); }
}

onnxruntime() {
	local package sha512 library stamp
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64)
		package=sherpa-onnx-linux-x64 library=libonnxruntime.so
		sha512=ea99678636a0b127939ed0a09e56a0f3a8566ecfee644f42ae6b352e039bebcff59cab0842331df961b9d7d9be68fc13e93aec04e884333af1e35b7cb0be4be6
		;;
	Linux-aarch64)
		package=sherpa-onnx-linux-arm64 library=libonnxruntime.so
		sha512=4e583b6bbd1bfd681edce17c2204c717d8e14950ac2f22902a1c1ce01b09e40f9d2ff4ab16d1818f3b87a785de2e18a2393eda7c2c57e4f7529ff0f873c2e7bb
		;;
	Darwin-arm64)
		package=sherpa-onnx-darwin-arm64 library=libonnxruntime.dylib
		sha512=14f36024c82759597f2a14532211b728bdc0e0e9badd19f860a5dcf7fb8763b4b32dcbea2c92dcfe1ed405627076e5efbfb2b5f2de4da711d1e978179f8b235b
		;;
	*) fail "no ONNX Runtime is pinned for $(uname -s) $(uname -m): build or install it yourself and set STTBENCH_ONNXRUNTIME to the shared library" ;;
	esac
	stamp=third_party/lib/.$package-$SHERPA_VERSION
	[ -e "$stamp" ] && [ -e "third_party/lib/$library" ] && return
	need npm "install Node.js (Debian: apt-get install npm, macOS: brew install node)"
	echo "deps: fetching $package $SHERPA_VERSION" >&2
	scratch
	npm pack --silent --pack-destination "$work" "$package@$SHERPA_VERSION" >/dev/null ||
		fail "npm cannot fetch $package $SHERPA_VERSION: is there a network?"
	verify 512 "$work/$package-$SHERPA_VERSION.tgz" "$sha512" "$package $SHERPA_VERSION"
	tar -xzf "$work/$package-$SHERPA_VERSION.tgz" -C "$work" "package/$library"
	mkdir -p third_party/lib
	mv -f "$work/package/$library" "third_party/lib/$library"
	touch "$stamp"
}

silero() {
	local stamp=third_party/models/.silero-vad-$SILERO_VERSION dir
	[ -e "$stamp" ] && [ -e third_party/models/silero_vad.onnx ] && return
	dir=$(go mod download -json "$SILERO_MODULE@$SILERO_VERSION" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
	[ -n "$dir" ] || fail "go cannot fetch $SILERO_MODULE $SILERO_VERSION: is there a network?"
	scratch
	cp "$dir/testfiles/silero_vad.onnx" "$work/silero_vad.onnx"
	chmod u+w "$work/silero_vad.onnx" # the module cache is read-only
	verify 256 "$work/silero_vad.onnx" "$SILERO_SHA256" "silero_vad.onnx of $SILERO_MODULE $SILERO_VERSION"
	mkdir -p third_party/models
	mv -f "$work/silero_vad.onnx" third_party/models/silero_vad.onnx
	touch "$stamp"
}

modules() {
	local stamp
	stamp=third_party/.modules-$(digest 256 go.sum)
	[ -e "$stamp" ] && [ "$(cat "$stamp")" = "$(go env GOMODCACHE)" ] && [ -d "$(go env GOMODCACHE)/cache" ] && return
	go mod download
	rm -f third_party/.modules-*
	mkdir -p third_party
	go env GOMODCACHE >"$stamp"
}

debian_packages() {
	local missing=() package as_root=()
	for package in $DEBIAN_PACKAGES; do
		case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
		installed*) ;; # twice "installed" where two architectures are
		*) missing+=("$package") ;;
		esac
	done
	command -v "${CC:-gcc}" >/dev/null || missing+=(gcc libc6-dev)
	[ ${#missing[@]} -eq 0 ] && return
	if [ "$(id -u)" -ne 0 ]; then
		if sudo -n true 2>/dev/null; then
			as_root=(sudo -n)
		else
			fail "packages are missing and there are no rights to install them; run: sudo apt-get install --no-install-recommends ${missing[*]}"
		fi
	fi
	echo "deps: installing ${missing[*]}" >&2
	{ ${as_root[@]+"${as_root[@]}"} apt-get update -q &&
		${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
			apt-get install -q -y --no-install-recommends "${missing[@]}"; } >&2 ||
		fail "apt-get failed; still missing: ${missing[*]}"
}

# Elsewhere nothing is installed, only looked for.
other_packages() {
	local missing=() command
	for command in flite espeak-ng sox; do
		command -v "$command" >/dev/null || missing+=("$command")
	done
	if [ "$(uname -s)" = Darwin ]; then
		echo "deps: note: bin/sttlocal needs PocketSphinx 5prealpha, which Homebrew does not have (its cmu-pocketsphinx is version 5); the demo runs on Debian" >&2
		[ ${#missing[@]} -eq 0 ] || fail "missing: ${missing[*]}; run: brew install ${missing[*]}"
	else
		echo "deps: note: this is not Debian; its packages are: $DEBIAN_PACKAGES" >&2
		[ ${#missing[@]} -eq 0 ] || fail "missing: ${missing[*]}; install them with the package manager of this system"
	fi
}

need go "install Go as named in go.mod"
onnxruntime
silero
modules
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
	debian_packages
else
	other_packages
fi
