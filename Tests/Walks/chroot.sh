# Sourced by the walks: a Debian of its own in a folder, and programs that run in there and nowhere else.
# shellcheck shell=bash

# make_debian ROOT: Debian bookworm with what every machine has, in the new folder ROOT. Takes a minute or two.
# WALK_BASE, a tar archive, is used instead if it is there, else made for the next time.
make_debian() {
  local root=$1 mirror=${WALK_MIRROR:-http://deb.debian.org/debian}
  if [ -n "${WALK_BASE-}" ] && [ -e "$WALK_BASE" ]; then
    tar -C "$root" -xf "$WALK_BASE"
    return
  fi
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror"
  cat >"$root/etc/apt/sources.list" <<END
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb ${mirror%/debian}/debian-security bookworm-security main
END
  # No service starts in there by being installed.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # As systemd makes it on every machine.
  ln -sf ../proc/self/mounts "$root/etc/mtab"
  inside "$root" apt-get -q update
  if [ -n "${WALK_BASE-}" ]; then
    tar -C "$root" -cf "$WALK_BASE.new" .
    mv "$WALK_BASE.new" "$WALK_BASE"
  fi
}

# inside ROOT COMMAND...: runs it in there as root, with mounts and processes that end with it. Reads nothing.
inside() {
  enter "$1" --pid --fork --kill-child -- "${@:2}"
}

# inside_visibly: the same among the processes of this machine, for what needs that, such as autofs.
inside_visibly() {
  local code=0 link process
  enter "$1" -- "${@:2}" || code=$?
  for link in /proc/[0-9]*/root; do
    [ "$(readlink "$link" 2>/dev/null || true)" = "$1" ] || continue
    process=${link%/root}
    kill -9 "${process#/proc/}" 2>/dev/null || true
  done
  return "$code"
}

# enter ROOT [OPTION...] -- COMMAND...: with these options for unshare(1).
enter() {
  local root=$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  # shellcheck disable=SC2016
  unshare --mount --ipc --uts "${options[@]}" bash -euc '
    root=$1
    shift
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    for name in null zero full random urandom tty fuse autofs; do
      [ -e "/dev/$name" ] || continue
      touch "$root/dev/$name"
      mount --bind "/dev/$name" "$root/dev/$name"
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t tmpfs -o mode=755 run "$root/run"
    mkdir -m 1777 "$root/run/lock"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root \
      TERM=dumb DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
  ' inside "$root" "$@" </dev/null
}
