#!/bin/sh
# Builds strata_VERSION_ARCHITECTURE.deb from the built programs:
#
#   cargo build --release && etc/package/build-deb.sh OUT_DIR [DPKG_DEB_OPTION...]
#
# PROGRAMS names another directory of programs, as for install.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?"the directory for the package: etc/package/build-deb.sh OUT_DIR"}
shift
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
umask 022

DESTDIR=$stage "$here/install.sh"
mkdir "$stage/DEBIAN"
install -m 755 "$here/debian/postinst" "$here/debian/prerm" "$here/debian/postrm" "$stage/DEBIAN"
# dpkg asks before it replaces one of these that was edited.
(cd "$stage" && find etc -type f | sort | sed 's|^|/|') >"$stage/DEBIAN/conffiles"

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
architecture=$(dpkg --print-architecture)
# The newest version of a symbol is what the programs need of the C library.
libc=$(cat "$stage"/usr/bin/* | grep -aoE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -n 1)
size=$(du -sk --exclude=DEBIAN "$stage" | cut -f 1)
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" \
  -e "s/@LIBC@/${libc#GLIBC_}/" -e "s/@SIZE@/$size/" \
  "$here/debian/control" >"$stage/DEBIAN/control"
dpkg-deb --root-owner-group "$@" --build "$stage" "$out/strata_${version}_$architecture.deb"
