#!/bin/sh
# Copies the built programs and what a system needs to run them:
#
#   cargo build --release && sudo etc/package/install.sh
#
# DESTDIR   directory that stands for / [/]
# PROGRAMS  directory of the built programs [target/release]
#
# What lies in /etc already is the operator's and stays as it is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/etc/package}
dest=${DESTDIR:-}
programs=${PROGRAMS:-$root/target/release}
umask 022

# put MODE SOURCE TARGET
put() {
  install -D -m "$1" "$2" "$dest$3"
}

# put_config SOURCE TARGET
put_config() {
  if [ -e "$dest$2" ]; then
    echo "kept: $dest$2"
  else
    put 644 "$1" "$2"
  fi
}

for program in traffic_server traffic_ctl traffic_line jtest; do
  if [ ! -x "$programs/$program" ]; then
    echo "install.sh: no program $programs/$program; run cargo build --release, or name their directory by PROGRAMS" >&2
    exit 1
  fi
done
for program in traffic_server traffic_ctl traffic_line jtest; do
  put 755 "$programs/$program" "/usr/bin/$program"
done
for file in records.config remap.config storage.config; do
  put_config "$here/$file" "/etc/strata/$file"
done
put_config "$root/etc/udev/61-strata.rules" /etc/udev/rules.d/61-strata.rules
put 644 "$root/etc/systemd/strata.service" /usr/lib/systemd/system/strata.service
put 644 "$here/sysusers.conf" /usr/lib/sysusers.d/strata.conf
for file in "$root/README.md" "$root/LICENSE" "$root"/docs/*.md; do
  put 644 "$file" "/usr/share/doc/strata/${file#"$root/"}"
done
