# Sourced by scripts/install and scripts/package: what an installation consists of.
# shellcheck shell=bash

# MODE SOURCE PLACE, one a line. SOURCE is below scripts/, "program" the built program. PLACE is below the
# prefix. In a SOURCE that ends in .in, @PREFIX@ becomes the prefix.
installed_files() {
  local zsh=share/zsh/site-functions
  # Where Debian's zsh looks for what packages bring.
  [ "$1" != /usr ] || zsh=share/zsh/vendor-completions
  cat <<END
0755 program bin/photovault
0644 share/photovault.1 share/man/man1/photovault.1
0644 share/photovault.bash share/bash-completion/completions/photovault
0644 share/_photovault $zsh/_photovault
0644 share/photovault.fish share/fish/vendor_completions.d/photovault.fish
0644 share/photovault.desktop.in share/applications/photovault.desktop
0644 share/photovault@.service.in share/systemd/user/photovault@.service
0755 share/photovault-desktop.in libexec/photovault-desktop
0755 share/read-vault.py share/photovault/read-vault.py
0644 ../Sources/FORMAT.md share/photovault/FORMAT.md
END
}

# Links to the program in sbin, the names that mount(8) calls.
# shellcheck disable=SC2034
helper_names=(mount.fuse.photovault mount.photovault)

# put_files TOP PROGRAM PREFIX ROOT: installs all but the links under ROOT/PREFIX, for use at PREFIX.
put_files() {
  local top=$1 program=$2 prefix=$3 root=$4 mode source place text
  while read -r mode source place; do
    place=$root$prefix/$place
    case $source in
      program) install -D -s -m "$mode" "$program" "$place" ;;
      *.in)
        text=$(cat "$top/scripts/$source")
        install -D -m "$mode" /dev/null "$place"
        printf '%s\n' "${text//@PREFIX@/"$prefix"}" >"$place"
        ;;
      *) install -D -m "$mode" "$top/scripts/$source" "$place" ;;
    esac
  done < <(installed_files "$prefix")
}
