import Glibc

/// What the kernel and /proc say, without touching any mount.
enum MountTable {
  /// The type of what is mounted at `path`, nil if nothing is.
  static func type(at path: String) -> String? {
    for line in Scratch.read("/proc/self/mounts").split(separator: "\n").reversed() {
      let fields = line.split(separator: " ")
      if fields.count > 2 && fields[1] == path { return String(fields[2]) }
    }
    return nil
  }

  /// Every process of the program that has to do with `folder`: by its arguments, or by what it holds open.
  static func daemons(of folder: String) -> [pid_t] {
    // Links in /proc show where a file is, not by which name it was opened.
    guard
      let list = try? Command.run(
        [
          "bash", "-c",
          """
          for process in /proc/[0-9]*; do
            [ "$(readlink "$process/exe" | sed 's/ (deleted)$//')" = "$1" ] || continue
            if tr '\\0' '\\n' <"$process/cmdline" | grep -qF "$2" ||
              find "$process/fd" "$process/cwd" -printf '%l\\n' 2>/dev/null | grep -qF "$2"
            then echo "${process#/proc/}"; fi
          done
          """, "daemons", Checkout.program, folder,
        ])
    else { return [] }
    return list.output.split(separator: "\n").compactMap { pid_t($0) }
  }
}
