import Glibc
import Platform
import SecuredData

/// The blobs that are in a directory before it becomes a vault.
struct Takeover {
  private static let suffix: StaticString = ".securedData"
  /// One may be damaged, or of another password.
  private static let trialCount = 3

  private let directory: String
  /// The smallest come first.
  private let blobs: [(name: FileName, size: Int64)]

  var holdsBlobs: Bool { !blobs.isEmpty }

  init(directory path: String) throws(CommandError) {
    directory = path
    blobs = try about(path) { () throws(Errno) in try Self.blobs(in: path) }
  }

  private static func blobs(in path: String) throws(Errno) -> [(name: FileName, size: Int64)] {
    let directory: FileDescriptor
    do throws(Errno) {
      directory = try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
    } catch {
      if error == .noSuchEntry { return [] }
      throw error
    }
    var blobs: [(name: FileName, size: Int64)] = []
    for entry in try DirectoryEntries.read(directory.rawValue)
    where entry.isRegular && entry.name.hasSuffix(suffix) {
      let size = try Syscalls.status(of: entry.name, in: directory.rawValue).st_size
      blobs.append((entry.name, Int64(size)))
    }
    return blobs.sorted { $0.size < $1.size }
  }

  /// Refuses a password that opens none of the smallest blobs. Without one there must be no blobs:
  /// a random recovery key opens none of them.
  func check(_ password: borrowing SecretBytes?) throws(CommandError) {
    guard holdsBlobs else { return }
    switch password {
    case .none:
      throw .usage(
        "\(directory) holds .securedData files: give their password by --blob-password-file",
        Create.name)
    case .some(let password):
      for blob in blobs.prefix(Self.trialCount) where try opens(blob.name, password) { return }
    }
    throw CommandError(
      .wrongCredentials, "the blob password does not open \(directory)/\(blobs[0].name)",
      hint: "nothing was changed; try the password again")
  }

  private func opens(
    _ blob: FileName, _ password: borrowing SecretBytes
  ) throws(CommandError) -> Bool {
    let path = FileName("\(directory)/".utf8 + blob.bytes)
    let file = try about("\(path)") { () throws(Errno) in try Syscalls.open(path, flags: O_RDONLY) }
    do throws(CommandError) {
      try MessageFile("\(path)", file.rawValue).decrypt(password: password) { _ in }
      return true
    } catch {
      return false
    }
  }
}
