# Runs one step of a walk, inside of the Debian that it walks in: inside.sh STEP. As root; alice is the person.
# shellcheck shell=bash

# as_alice: runs the script on standard input as alice, as if she had logged in.
as_alice() {
  {
    declare -f expect mounted settle readme_block
    cat
  } >/walk/script
  chmod 0644 /walk/script
  su - alice -c 'exec bash -euxo pipefail /walk/script' </dev/null
}

# readme_block HEADING [N]: the N-th block of code below a heading of the README, as it stands there.
readme_block() {
  awk -v heading="$1" -v wanted="${2-1}" '
    /^#+ / { inside = $0 ~ ("^#+ " heading "$"); number = 0; next }
    inside && /^```/ { open = !open; if (open) number++; next }
    inside && open && number == wanted { print; found = 1 }
    END { exit !found }' /walk/README.md
}

# expect CODE COMMAND...: it ends with that exit code.
expect() {
  local wanted=$1 code=0
  shift
  "$@" || code=$?
  [ "$code" -eq "$wanted" ]
}

# mounted DIR: whether a photovault is mounted there.
mounted() { grep -q " $1 fuse.photovault " /proc/mounts; }

# settle: waits until no photovault runs in here any more.
settle() {
  local process running
  for _ in $(seq 100); do
    running=
    for process in $(pgrep -x photovault || true); do
      if [ "/proc/$process/root" -ef / ]; then running=$process; fi
    done
    [ -n "$running" ] || return 0
    sleep 0.1
  done
  ps "$running" >&2
  return 1
}

# shellcheck source=/dev/null
. "/walk/steps/$1"
settle
(! grep 'fuse.photovault' /proc/mounts)
