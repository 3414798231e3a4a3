# Sourced by the other scripts: Debian packages, the toolchain and where to build.
# shellcheck shell=bash

# say TEXT: one line of progress. Standard output belongs to the program.
say() { printf 'photovault: %s\n' "$1" >&2; }

# fail TEXT HINT: an error as the program itself words it.
fail() {
  printf 'photovault: error: %s\n' "$1" >&2
  [ -z "${2-}" ] || printf 'photovault: hint: %s\n' "$2" >&2
  exit 1
}

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
      ii*) ;;
      *) printf '%s ' "$package" ;;
    esac
  done
}

# need_packages PACKAGE...: installs what is missing as root, else says whom to ask for what.
need_packages() {
  local log missing
  command -v dpkg-query >/dev/null ||
    fail "this script knows Debian's packages only" "install the equivalents of: $*"
  read -ra missing <<<"$(missing_packages "$@")"
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" -eq 0 ] || fail "missing packages: ${missing[*]}" \
    "ask the administrator to run: apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  log=$(mktemp)
  if ! install_packages "${missing[@]}" >"$log" 2>&1; then
    # The package lists may be old or not there yet.
    apt-get update >>"$log" 2>&1 </dev/null || true
    if ! install_packages "${missing[@]}" >>"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      fail "apt-get could not install ${missing[*]}" "its messages are above"
    fi
  fi
  rm -f "$log"
}

install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null
}

need_swift() {
  local version
  command -v swift >/dev/null ||
    fail "no Swift toolchain" "install Swift 6.1 or newer from https://www.swift.org/install/linux/"
  version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
  [ "$(printf '6.1\n%s\n' "$version" | sort -V | head -n 1)" = 6.1 ] ||
    fail "Swift ${version:-of an unknown version} is too old" "install Swift 6.1 or newer"
}

# build_directory TOP: the checkout's own .build, or one in the user's cache where that is
# someone else's.
build_directory() {
  local top=$1
  if [ -e "$top/.build" ]; then
    if [ -O "$top/.build" ] && [ -w "$top/.build" ]; then
      printf '%s\n' "$top/.build"
      return
    fi
  elif [ -w "$top" ]; then
    printf '%s\n' "$top/.build"
    return
  fi
  printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/photovault/build-$(printf %s "$top" | cksum | cut -d' ' -f1)"
}

# Packages without which nothing is built, and without which nothing is mounted.
build_packages=(libfuse3-dev libssl-dev pkg-config)
run_packages=(fuse3)

# is_current BINARY TOP: was it built from the sources as they are? The stamp beside it is as old as the
# beginning of that build; folders count too, so that a deleted file is noticed.
is_current() {
  [ -x "$1" ] && [ -e "$1.stamp" ] &&
    [ -z "$(find "$2/Sources" "$2/Package.swift" -newer "$1.stamp" -print -quit)" ]
}

# build_release TOP BUILD: makes BUILD/release/photovault current. Says nothing if it is.
build_release() {
  local top=$1 build=$2 binary=$2/release/photovault log lock
  need_packages "${build_packages[@]}" "${run_packages[@]}"
  need_swift
  mkdir -p "$build"
  exec {lock}>"$build/photovault.lock"
  flock "$lock"
  if ! is_current "$binary" "$top"; then
    say "building (the first time takes some minutes)"
    log=$(mktemp)
    touch "$build/photovault.started"
    if ! swift build --package-path "$top" --scratch-path "$build" -c release --static-swift-stdlib \
      --product photovault </dev/null >"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      fail "the build failed" "the compiler's messages are above"
    fi
    rm -f "$log"
    mv "$build/photovault.started" "$binary.stamp"
  fi
  exec {lock}>&-
}
