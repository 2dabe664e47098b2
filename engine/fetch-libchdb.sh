#!/bin/sh
# Puts libchdb, ClickHouse's engine as a shared library, into the user's cache:
# ${XDG_CACHE_HOME:-~/.cache}/chstate/libchdb/VERSION/libchdb.so. It comes from the
# npm package of chDB for this system and is checked against the sums below, the
# package by npm's own sha512, the library by sha256. Does nothing when the right
# file is there. CHDB_TARBALL names a package file to use instead of fetching.
set -eu

VERSION=26.5.3
PACKAGE=@chdb/lib-linux-x64-gnu
# The same as npm's integrity sha512-fPrLmRt5…XQaQ==, in hexadecimal.
PACKAGE_SHA512=7cfacb991b79328a2bf721b3e266b36eb3637b8b7b5fd281da64c6917156471441b3688acbcca1ea3c75d71b1ad10af788314c53fc87a9df9b55d6095eedd069
LIBRARY_SHA256=4330da79405733f7572f27c1442f46c03a08301f00859dce0368645731b1e1dc

say() { echo "fetch-libchdb: $*" >&2; }
die() { say "$*"; exit 1; }

system=$(uname -s)/$(uname -m)
case $system in
Linux/x86_64) ;;
*) die "there is no pinned libchdb $VERSION for $system; get one for this system and set CHDB_LIB_PATH to it" ;;
esac

cache=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/chstate/libchdb/$VERSION
library=$cache/libchdb.so
# Beside the library, the sum it had when it was put there: checking 560 MB each
# time would take a second.
stamp=$cache/libchdb.so.sha256

if [ -s "$library" ] && [ -s "$stamp" ] && [ "$(cat "$stamp")" = "$LIBRARY_SHA256 $(wc -c <"$library" | tr -d ' ')" ]; then
	exit 0
fi

sha256() { sha256sum "$1" | cut -d' ' -f1; }

mkdir -p "$cache"
# What a killed run left.
find "$cache" -maxdepth 1 -name '.fetch.*' -mmin +60 -exec rm -rf {} +
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

put_stamp() {
	echo "$LIBRARY_SHA256 $(wc -c <"$library" | tr -d ' ')" >"$work/stamp"
	mv "$work/stamp" "$stamp"
}

# Another run may have been cut between the library and its stamp.
if [ -s "$library" ] && [ "$(sha256 "$library")" = "$LIBRARY_SHA256" ]; then
	put_stamp
	exit 0
fi

if [ -n "${CHDB_TARBALL:-}" ]; then
	tarball=$CHDB_TARBALL
	[ -r "$tarball" ] || die "CHDB_TARBALL names $tarball, which cannot be read"
else
	command -v npm >/dev/null || die "npm is needed to fetch $PACKAGE; install it, or set CHDB_LIB_PATH to a libchdb $VERSION"
	say "fetching $PACKAGE@$VERSION (about 170 MB)"
	name=$(cd "$work" && npm pack --silent "$PACKAGE@$VERSION") || die "npm could not fetch $PACKAGE@$VERSION; is the npm registry reachable?"
	tarball=$work/$name
fi

sum=$(sha512sum "$tarball" | cut -d' ' -f1)
[ "$sum" = "$PACKAGE_SHA512" ] || die "$tarball has the sha512 $sum, not the pinned $PACKAGE_SHA512; it is not used"

say "unpacking into $cache"
tar -xzf "$tarball" -C "$work" package/libchdb.so || die "cannot unpack $tarball; is there room in $cache (600 MB)?"
sum=$(sha256 "$work/package/libchdb.so")
[ "$sum" = "$LIBRARY_SHA256" ] || die "the package's libchdb.so has the sha256 $sum, not the pinned $LIBRARY_SHA256; it is not used"

mv "$work/package/libchdb.so" "$library"
put_stamp
say "libchdb $VERSION is at $library"
