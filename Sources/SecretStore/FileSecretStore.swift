import Glibc
import Platform

/// One file of mode 0600 per account, `USER.json`, in a directory of mode 0700.
///
/// Writers take turns by a lock on `.lock`; a file changes by renaming a complete new one over it,
/// so readers need no lock.
package struct FileSecretStore: SecretStore {
  private static let suffix = ".json"
  private static let lockName = FileName(".lock")
  private static let tagName = FileName("CACHEDIR.TAG")
  private static let temporaryName = FileName(".photovault-account.tmp")

  private let path: String

  /// `directory` is made by the first `add`.
  package init(directory: String) { path = directory }

  package func add(_ account: Account) throws(SecretStoreError) {
    let contents = try AccountCoder.encode(account)
    let directory = try makeDirectory()
    try locked(directory.rawValue) { () throws(SecretStoreError) in
      let name = Self.fileName(account.name)
      // A name is in one store only.
      for file in [name, KeyringReference.fileName(account.name)] {
        if try exists(file, in: directory.rawValue) { throw .duplicateItem }
      }
      try about(name) { () throws(Errno) in
        // The tag comes first: the item is never there without it.
        if account.thisDeviceOnly { try writeTag(directory.rawValue) }
        try write(contents, as: name, in: directory.rawValue)
        do throws(Errno) { try Syscalls.synchronize(directory.rawValue) } catch {
          // Nobody shall find an item that its maker was told doesn't exist.
          try? Syscalls.unlink(name, in: directory.rawValue)
          throw error
        }
      }
    }
  }

  package func lookUp(_ name: AccountName) throws(SecretStoreError) -> Account {
    let directory = try open()
    return try read(name, in: directory.rawValue)
  }

  package func update(_ old: Account, to new: Account) throws(SecretStoreError) -> Bool {
    precondition(old.name == new.name)
    let contents = try AccountCoder.encode(new)
    let directory = try open()
    return try locked(directory.rawValue) { () throws(SecretStoreError) in
      guard try read(old.name, in: directory.rawValue) == old else { return false }
      let name = Self.fileName(old.name)
      try about(name) { () throws(Errno) in
        try write(contents, as: name, in: directory.rawValue)
        try Syscalls.synchronize(directory.rawValue)
      }
      return true
    }
  }

  package func delete(_ name: AccountName) throws(SecretStoreError) {
    let directory = try open()
    try locked(directory.rawValue) { () throws(SecretStoreError) in
      let file = Self.fileName(name)
      do throws(Errno) {
        try Syscalls.unlink(file, in: directory.rawValue)
        try Syscalls.synchronize(directory.rawValue)
      } catch {
        if error == .noSuchEntry { throw .itemNotFound }
        throw unavailable(file, error)
      }
      if try !needsTag(directory.rawValue) {
        try? Syscalls.unlink(Self.tagName, in: directory.rawValue)
      }
    }
  }

  package func names() throws(SecretStoreError) -> [AccountName] {
    try names(withSuffix: Self.suffix)
  }
}

// What keeps other files about accounts beside the items uses this, too.
extension FileSecretStore {
  static func fileName(_ name: AccountName) -> FileName { FileName(name.text + suffix) }

  /// The accounts that have a file whose name ends so.
  func names(withSuffix suffix: String) throws(SecretStoreError) -> [AccountName] {
    let directory: FileDescriptor
    do throws(SecretStoreError) { directory = try open() } catch {
      if case .itemNotFound = error { return [] }
      throw error
    }
    return try names(in: directory.rawValue, withSuffix: suffix)
  }

  private func names(
    in directory: CInt, withSuffix suffix: String = suffix
  ) throws(SecretStoreError) -> [AccountName] {
    do throws(Errno) {
      return try DirectoryEntries.read(directory).compactMap { entry in
        guard entry.isRegular, let text = String(validating: entry.name.bytes, as: UTF8.self),
          entry.name.bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
        else { return nil }
        return try? AccountName(String(text.dropLast(suffix.count)))
      }.sorted()
    } catch { throw .notAvailable(.system(path, error)) }
  }

  private func read(_ name: AccountName, in directory: CInt) throws(SecretStoreError) -> Account {
    let file = Self.fileName(name)
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try SmallFile.read(file, in: directory, atMost: AccountCoder.greatestByteCount)
    } catch { throw unavailable(file, error) }
    guard let bytes else {
      throw try exists(file, in: directory)
        ? .notAvailable(.damaged("it is no file, or too long")) : .itemNotFound
    }
    return try AccountCoder.decode(bytes, name: name)
  }

  /// Under the lock, so one temporary name serves all; one that a crash left goes first.
  func write(
    _ contents: [UInt8], as name: FileName, in directory: CInt
  ) throws(Errno) {
    do throws(Errno) { try Syscalls.unlink(Self.temporaryName, in: directory) } catch {
      if error != .noSuchEntry { throw error }
    }
    try SmallFile.replace(
      name, with: contents, in: directory, temporary: Self.temporaryName, overwriting: true)
  }

  // MARK: the directory

  func makeDirectory() throws(SecretStoreError) -> FileDescriptor {
    try making { () throws(Errno) in
      try DirectoryPath.synchronize(try DirectoryPath.make(path))
      let directory = try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
      let status = try Syscalls.status(directory.rawValue)
      if status.st_mode & 0o77 != 0 { try Syscalls.setMode(directory.rawValue, 0o700) }
      return directory
    }
  }

  func exists(_ file: FileName, in directory: CInt) throws(SecretStoreError) -> Bool {
    try about(file) { () throws(Errno) in try Syscalls.exists(file, in: directory) }
  }

  /// Throws `.itemNotFound` where there is none yet.
  func open() throws(SecretStoreError) -> FileDescriptor {
    do throws(Errno) {
      return try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
    } catch {
      if error == .noSuchEntry { throw .itemNotFound }
      throw .notAvailable(.system(path, error))
    }
  }

  func locked<Result>(
    _ directory: CInt, _ body: () throws(SecretStoreError) -> Result
  ) throws(SecretStoreError) -> Result {
    let lock = try making { () throws(Errno) in
      let lock = try Syscalls.open(
        Self.lockName, in: directory, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
      try Syscalls.lockExclusively(lock.rawValue)
      return lock
    }
    // The descriptor lives to the end of the body.
    return try withExtendedLifetime(lock, body)
  }

  // MARK: CACHEDIR.TAG, at which backup programs turn back

  private static let tag = """
    Signature: 8a477f597d28d172789f06886806bc55
    # An account in this directory is for this device only, so backups leave the directory out.
    # Source: https://bford.info/cachedir/

    """

  private func writeTag(_ directory: CInt) throws(Errno) {
    if try Syscalls.exists(Self.tagName, in: directory) { return }
    try write(Array(Self.tag.utf8), as: Self.tagName, in: directory)
    try Syscalls.synchronize(directory)
  }

  /// True also where an item can't be read: it may be one for this device only.
  private func needsTag(_ directory: CInt) throws(SecretStoreError) -> Bool {
    for name in try names(in: directory) {
      do throws(SecretStoreError) {
        if try read(name, in: directory).thisDeviceOnly { return true }
      } catch { return true }
    }
    return false
  }

  // MARK: errors

  private func making<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(SecretStoreError) -> Result {
    do throws(Errno) { return try body() } catch { throw .notAvailable(.system(path, error)) }
  }

  func about<Result>(
    _ file: FileName, _ body: () throws(Errno) -> Result
  ) throws(SecretStoreError) -> Result {
    do throws(Errno) { return try body() } catch { throw unavailable(file, error) }
  }

  private func unavailable(_ file: FileName, _ error: Errno) -> SecretStoreError {
    .notAvailable(.system("\(path)/\(file)", error))
  }
}
