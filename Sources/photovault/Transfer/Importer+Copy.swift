import Glibc
import Platform
import SecuredData
import VaultStorage

/// Writing one file of an import, up to where it waits for its name.
extension Importer {
  func present(
    _ file: SourceFile, as name: FileName, _ found: Found, _ place: Place, _ batch: ImportBatch
  ) throws(TransferFailure) {
    run.count(bytes: file.size)
    batch.add(
      ImportBatch.Item(
        file, try file.status(), name, place, .present(found.stored, found.kind)))
  }

  func copy(
    _ file: SourceFile, as name: FileName, _ place: Place, replacing found: Found?,
    _ batch: ImportBatch
  ) throws(TransferFailure) {
    if file.kind == .symbolicLink {
      return try copyLink(file, as: name, place, replacing: found, batch)
    }
    do throws(TransferFailure) {
      try copyContents(file, as: name, place, replacing: found, batch)
    } catch {
      guard case .changed = error else { throw error }
      run.say("it changed while it was read, so it is read again: \(file.path)")
      try copyContents(file, as: name, place, replacing: found, batch)
    }
  }

  private func copyContents(
    _ file: SourceFile, as name: FileName, _ place: Place, replacing found: Found?,
    _ batch: ImportBatch
  ) throws(TransferFailure) {
    let content = try file.content(password)
    var claimed: [UInt8]?
    if options.skipsDuplicates, mayBeDuplicate(file) {
      let digest = try content.digest()
      if let twin = twin(of: digest, storedSize(of: content, file), batch) {
        run.count(bytes: file.size)
        return batch.add(
          ImportBatch.Item(file, content.status, name, place, .duplicate(twin)))
      }
      claimed = digest
    }
    var counted: Int64 = 0
    do throws(TransferFailure) {
      let writer = try TransferFailure.onVault { () throws(StorageError) in
        try BlobWriter(in: place.directory, keys: vault.keys)
      }
      let hash = try TransferFailure.inCrypto { () throws(CryptoFailure) in try Digest() }
      try content.read { bytes throws(TransferFailure) in
        try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.update(bytes) }
        try TransferFailure.onVault { () throws(StorageError) in try writer.append(bytes) }
        counted += Int64(bytes.count)
        run.count(bytes: Int64(bytes.count))
      }
      try content.requireUnchanged()
      let digest = try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.finish() }
      if let claimed, claimed != digest { throw TransferFailure.changed }
      let written = try TransferFailure.onVault { () throws(StorageError) in try writer.finish() }
      let missing = try setAttributes(of: content, on: written.descriptor)
      for attribute in missing { run.say("not kept: attribute \(attribute) of \(file.path)") }
      Syscalls.startWriteback(written.descriptor, 0..<max(1, writer.plaintextSize))
      var item = ImportBatch.Item(
        file, content.status, name, place,
        .blob(written, digest, plaintextSize: writer.plaintextSize, replacing: found?.stored))
      item.storedSize = storedSize(of: content, file)
      item.isIncomplete = !missing.isEmpty
      batch.add(item)
    } catch {
      run.count(bytes: -counted)
      if let claimed { contents.giveUp(claimed) }
      throw error
    }
  }

  private func mayBeDuplicate(_ file: SourceFile) -> Bool {
    guard file.mayBeDuplicate else { return false }
    return sizes[file.storedSize, default: 0] > 1 || contents.mayHold(storedSize: file.storedSize)
  }

  /// A file that holds the same and is safe; where nil, the caller has claimed the contents.
  private func twin(
    of digest: [UInt8], _ storedSize: Int64, _ batch: ImportBatch
  ) -> FileName? {
    if let known = contents.twin(digest: digest, storedSize: storedSize, except: nil) {
      return known
    }
    while true {
      switch contents.claim(digest) {
      case .mine: return nil
      case .writtenAs(let path): return path
      case .underway:
        batch.finish()
        contents.waitForClaim(digest)
      }
    }
  }

  private func copyLink(
    _ file: SourceFile, as name: FileName, _ place: Place, replacing found: Found?,
    _ batch: ImportBatch
  ) throws(TransferFailure) {
    let target = try file.linkTarget()
    let status = try file.status()
    guard found == nil else { throw .other("a link does not replace another file") }
    let directory = place.directory
    let stored = try TransferFailure.onVault { () throws(StorageError) in
      let stored = try directory.storedName(name, kind: .other)
      try directory.prepareForEntries()
      try directory.prepareCompanion(stored, for: name)
      return stored
    }
    do throws(TransferFailure) {
      let encoded = try TransferFailure.onVault { () throws(StorageError) in
        try directory.encodeLinkTarget(target)
      }
      try TransferFailure.inVault { () throws(Errno) in
        let number = directory.fd.rawValue
        try Syscalls.makeSymbolicLink(to: encoded, as: stored.entry, in: number)
        if let owner = vault.newOwner {
          try Syscalls.setOwner(of: stored.entry, in: number, owner.user, owner.group)
        }
        try Syscalls.setTimes(
          of: stored.entry, in: number, access: status.st_atim, modification: status.st_mtim)
      }
    } catch {
      directory.removeCompanion(stored)
      throw error
    }
    batch.add(ImportBatch.Item(file, status, name, place, .link))
  }

  // MARK: Attributes

  /// Owner, mode, user attributes and times. The attributes that can't be kept.
  private func setAttributes(
    of content: borrowing SourceContent, on descriptor: CInt
  ) throws(TransferFailure) -> [FileName] {
    try setAttributes(
      content.status, from: content.descriptor.rawValue, on: descriptor)
  }

  func setAttributes(
    _ status: stat, from source: CInt, on descriptor: CInt
  ) throws(TransferFailure) -> [FileName] {
    if let owner = vault.newOwner {
      try TransferFailure.inVault { () throws(Errno) in
        try Syscalls.setOwner(descriptor, owner.user, owner.group)
      }
    }
    let missing = copyAttributes(from: source, to: descriptor)
    try TransferFailure.inVault { () throws(Errno) in
      try Syscalls.setMode(descriptor, status.st_mode & 0o777)
      try Syscalls.setTimes(descriptor, access: status.st_atim, modification: status.st_mtim)
    }
    return missing
  }

  private func copyAttributes(from source: CInt, to descriptor: CInt) -> [FileName] {
    // Where the disk knows no attributes, there are none.
    guard let names = try? Syscalls.extendedAttributeNames(source) else { return [] }
    let codec = ExtendedAttributes(keys: vault.keys)
    var missing: [FileName] = []
    for name in names where name.hasPrefix("user.") && !name.hasPrefix("user.photovault.") {
      do {
        let value = try Syscalls.extendedAttribute(source, name)
        try Syscalls.setExtendedAttribute(
          descriptor, try codec.storedName(name), try codec.encode(value: value, name: name))
      } catch { missing.append(name) }
    }
    return missing
  }
}
