# bash completion for photovault
# shellcheck shell=bash

_photovault() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local commands='create mount unmount lock status accounts passwd recovery-key recover remove check import export encrypt decrypt doctor'
  local password='--password-file --password-fd --password-command'
  local new_password='--new-password-file --new-password-fd --new-password-command'
  local options='--home --help' command=${COMP_WORDS[1]-}

  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
    return
  fi
  case $previous in
    --vault | --home) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    --*-file | -o) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    --on-conflict) mapfile -t COMPREPLY < <(compgen -W 'rename skip replace' -- "$current"); return ;;
    --names) mapfile -t COMPREPLY < <(compgen -W 'encrypted plain' -- "$current"); return ;;
    --store) mapfile -t COMPREPLY < <(compgen -W 'file secret-service' -- "$current"); return ;;
    --on-screen-lock | --on-suspend)
      mapfile -t COMPREPLY < <(compgen -W 'lock ignore' -- "$current"); return ;;
    --screen-lock-means) mapfile -t COMPREPLY < <(compgen -W 'lock blank' -- "$current"); return ;;
    --idle | --idle-force) mapfile -t COMPREPLY < <(compgen -W '0 90s 10m 1h' -- "$current"); return ;;
    --*-fd | --*-command | --lock-grace | --into | --from) return ;;
  esac
  case $command in
    create)
      options+=" $password --vault --names --store --this-device-only --blob-password-file"
      options+=' --blob-password-fd --blob-password-command'
      ;;
    mount)
      options+=" $password --create --remember --forget --idle --idle-force --on-screen-lock --screen-lock-means"
      options+=' --on-suspend --lock-grace --read-only --exclude-from-backup --keep-thumbnails --keep-mount-point-mode'
      options+=' --foreground -o'
      ;;
    unmount) options+=' --all --force' ;;
    status | accounts | doctor) options+=' --json' ;;
    passwd) options+=" $password $new_password" ;;
    recovery-key) options+=" $password" ;;
    recover)
      options+=" $new_password --vault --store --recovery-key-file --recovery-key-fd --recovery-key-command" ;;
    remove) options+=' --delete-photos --yes' ;;
    check) options+=" $password --json --repair" ;;
    import)
      options+=" $password --into --move --on-conflict --skip-duplicates --by-date --name-by-content"
      options+=' --blob-password-file --blob-password-fd --blob-password-command'
      ;;
    export) options+=" $password --from --on-conflict" ;;
    encrypt | decrypt) options="--help $password --force -o" ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    return
  fi
  case $command in
    mount)
      # The first word is a user, the second a folder.
      mapfile -t COMPREPLY < <(_photovault_users "$current"; compgen -d -- "$current")
      ;;
    import | export)
      # The first word is a user, the others are files.
      mapfile -t COMPREPLY < <(_photovault_users "$current"; compgen -f -- "$current")
      ;;
    unmount) mapfile -t COMPREPLY < <(_photovault_users "$current"; compgen -d -- "$current") ;;
    lock | passwd | recovery-key | recover | remove | check)
      mapfile -t COMPREPLY < <(_photovault_users "$current") ;;
    encrypt | decrypt) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
}

# The accounts whose names begin so. Not by compgen -W, which would take names for shell code.
_photovault_users() {
  local items=${PHOTOVAULT_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/photovault}/accounts item
  for item in "$items"/*.json "$items"/*.secret-service; do
    [ -e "$item" ] || continue
    item=${item##*/}
    item=${item%.*}
    [[ $item != "$1"* ]] || printf '%s\n' "$item"
  done
}

complete -o filenames -F _photovault photovault
