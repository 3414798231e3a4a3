# fish completion for photovault

function __photovault_users
    set -l home $PHOTOVAULT_HOME
    test -n "$home"; or set home (test -n "$XDG_DATA_HOME"; and echo $XDG_DATA_HOME; or echo $HOME/.local/share)/photovault
    for item in $home/accounts/*.json $home/accounts/*.secret-service
        string replace -r '.*/(.*)\.[^.]*$' '$1' $item
    end
end

function __photovault_secret -a commands name what
    complete -c photovault -n "__fish_seen_subcommand_from $commands" -l $name-file -rF -d "read $what from a file"
    complete -c photovault -n "__fish_seen_subcommand_from $commands" -l $name-fd -x -d '... from an open file descriptor'
    complete -c photovault -n "__fish_seen_subcommand_from $commands" -l $name-command -x -d '... from what a shell command prints'
end

complete -c photovault -f
complete -c photovault -n __fish_use_subcommand -l version -d 'print the version'
complete -c photovault -l help -d 'print help'
complete -c photovault -n 'not __fish_use_subcommand; and not __fish_seen_subcommand_from encrypt decrypt' -l home -xa '(__fish_complete_directories)' -d 'where accounts and vaults are kept'

complete -c photovault -n __fish_use_subcommand -a create -d 'make an account and its empty vault'
complete -c photovault -n __fish_use_subcommand -a mount -d 'unlock a vault'
complete -c photovault -n __fish_use_subcommand -a unmount -d 'lock a vault in order'
complete -c photovault -n __fish_use_subcommand -a lock -d 'lock vaults at once'
complete -c photovault -n __fish_use_subcommand -a status -d 'what is mounted'
complete -c photovault -n __fish_use_subcommand -a accounts -d 'list the accounts'
complete -c photovault -n __fish_use_subcommand -a passwd -d 'change the password'
complete -c photovault -n __fish_use_subcommand -a recovery-key -d 'print the recovery key'
complete -c photovault -n __fish_use_subcommand -a recover -d 'make the account anew from the recovery key'
complete -c photovault -n __fish_use_subcommand -a remove -d 'delete an account'
complete -c photovault -n __fish_use_subcommand -a check -d 'verify every photo'
complete -c photovault -n __fish_use_subcommand -a import -d 'copy photos into a vault without a mount'
complete -c photovault -n __fish_use_subcommand -a export -d 'copy photos out of a vault without a mount'
complete -c photovault -n __fish_use_subcommand -a encrypt -d 'encrypt one file'
complete -c photovault -n __fish_use_subcommand -a decrypt -d 'decrypt one file'
complete -c photovault -n __fish_use_subcommand -a doctor -d 'can this machine mount'

complete -c photovault -n '__fish_seen_subcommand_from mount unmount lock passwd recovery-key recover remove check import export' -a '(__photovault_users)'
complete -c photovault -n '__fish_seen_subcommand_from mount unmount export' -a '(__fish_complete_directories)'
complete -c photovault -n '__fish_seen_subcommand_from import encrypt decrypt' -F

__photovault_secret 'create mount passwd recovery-key check import export encrypt decrypt' password 'the password'
__photovault_secret 'passwd recover' new-password 'the new password'
__photovault_secret 'create import' blob-password "the photos' RNCryptor password"
__photovault_secret recover recovery-key 'the recovery key'

complete -c photovault -n '__fish_seen_subcommand_from create recover' -l vault -xa '(__fish_complete_directories)' -d 'the vault'
complete -c photovault -n '__fish_seen_subcommand_from create' -l names -xa 'encrypted plain' -d 'file names on the disk'
complete -c photovault -n '__fish_seen_subcommand_from create recover' -l store -xa 'file secret-service' -d 'where the account is kept'
complete -c photovault -n '__fish_seen_subcommand_from create' -l this-device-only -d 'keep the account out of backups'

complete -c photovault -n '__fish_seen_subcommand_from mount' -l create -d 'make the account if there is none'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l remember -d 'keep the password in the desktop\'s keyring'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l forget -d 'remove it from there'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l idle -xa '0 90s 10m 1h' -d 'lock after this time without use'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l idle-force -xa '0 90s 10m 1h' -d '... even if a program has a file open'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l on-screen-lock -xa 'lock ignore' -d 'when the screen locks'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l screen-lock-means -xa 'lock blank' -d 'whether blanking is a screen lock'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l on-suspend -xa 'lock ignore' -d 'when the machine suspends'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l lock-grace -x -d 'time for programs to finish before a lock'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l read-only -d 'nothing can be changed'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l exclude-from-backup -d 'ask backup programs to leave the folder out'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l keep-thumbnails -d 'keep thumbnails at lock'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l keep-mount-point-mode -d 'leave the mount point writable'
complete -c photovault -n '__fish_seen_subcommand_from mount' -l foreground -d 'stay, and log to standard error'
complete -c photovault -n '__fish_seen_subcommand_from mount' -s o -x -d 'any of these options, or FUSE\'s own'

complete -c photovault -n '__fish_seen_subcommand_from unmount' -l all -d 'every mounted vault'
complete -c photovault -n '__fish_seen_subcommand_from unmount' -l force -d 'cut off programs that hold files'
complete -c photovault -n '__fish_seen_subcommand_from status accounts check doctor' -l json -d 'for programs'
complete -c photovault -n '__fish_seen_subcommand_from check' -l repair -d 'put right what can be'
complete -c photovault -n '__fish_seen_subcommand_from import' -l into -x -d 'the folder of the vault that they go to'
complete -c photovault -n '__fish_seen_subcommand_from import' -l move -d 'delete each source once it is safe in the vault'
complete -c photovault -n '__fish_seen_subcommand_from import' -l skip-duplicates -d 'leave out what the vault holds under another name'
complete -c photovault -n '__fish_seen_subcommand_from import' -l by-date -d 'sort into YYYY/MM by the date in the picture'
complete -c photovault -n '__fish_seen_subcommand_from import' -l name-by-content -d 'add the extension that the contents ask for'
complete -c photovault -n '__fish_seen_subcommand_from export' -l from -x -d 'only this folder or file of the vault'
complete -c photovault -n '__fish_seen_subcommand_from import export' -l on-conflict -xa 'rename skip replace' -d 'if another file has the name'
complete -c photovault -n '__fish_seen_subcommand_from remove' -l delete-photos -d 'delete the vault, too'
complete -c photovault -n '__fish_seen_subcommand_from remove' -l yes -d 'don\'t ask'
complete -c photovault -n '__fish_seen_subcommand_from encrypt decrypt' -s o -rF -d 'the file to write'
complete -c photovault -n '__fish_seen_subcommand_from encrypt decrypt' -l force -d 'replace OUT if it exists'
