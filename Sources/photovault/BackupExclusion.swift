import Glibc
import Platform

/// Files in the mounted folder that ask programs to leave it out. They are stored in the vault like
/// any others, so they are there at the next mount, too, until somebody deletes them.
enum BackupExclusion {
  /// Source: the Cache Directory Tagging Specification (bford.info/cachedir).
  private static let signature = "Signature: 8a477f597d28d172789f06886806bc55"
  private static let tagName = FileName("CACHEDIR.TAG")
  private static let files = [
    (
      tagName,
      """
      \(signature)
      # Backup programs leave this folder out: what they would copy is not encrypted.
      # The vault itself is what to back up. Delete this file to have the folder backed up.

      """
    ),
    // Media players and file indexers: Android's media scanner, KDE's and GNOME's.
    (FileName(".nomedia"), ""),
    (FileName(".trackerignore"), ""),
  ]

  /// Makes those that are missing, through the mount at `folder`; says in the log what can't be.
  static func mark(_ folder: String) {
    do throws(Errno) {
      let directory = try Syscalls.open(
        FileName(folder), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      for (name, text) in files { try make(name, text, directory.rawValue) }
      let tag = try SmallFile.open(tagName, in: directory.rawValue, flags: O_RDONLY)
      var start = [UInt8](repeating: 0, count: signature.utf8.count)
      let count = try start.withMutableBytes { buffer throws(Errno) in
        try Syscalls.read(tag.rawValue, into: buffer, at: 0)
      }
      if count < start.count || !start.elementsEqual(signature.utf8) {
        Log.warning("\(folder)/CACHEDIR.TAG is not what backup programs look for")
      }
    } catch {
      Log.warning("\(folder) can't be marked for backup programs: \(error)")
    }
  }

  private static func make(
    _ name: FileName, _ text: String, _ directory: CInt
  ) throws(Errno) {
    do throws(Errno) {
      if try Syscalls.exists(name, in: directory) { return }
      try SmallFile.write(Array(text.utf8), as: name, in: directory, durably: false)
    } catch {
      if error != .exists { throw error }
    }
  }
}
