package import Platform

extension VaultDirectory {
  /// Puts the companion of a long form beside the entry that is about to be made; does nothing for
  /// a short form, or where it stands. On return its contents are on the disk.
  package func prepareCompanion(
    _ stored: StoredName, for name: FileName
  ) throws(StorageError) {
    guard let companion = stored.companion else { return }
    if context.isReadOnly { throw .system(.readOnly) }
    let spelling = try codec.spelling(name)
    let hash = try codec.hash(spelling)
    // A conflict copy shares the companion of the entry that it is a copy of.
    guard companion.bytes == hash + BlobName.companionSuffix else { return }
    let temporary = try temporaryName()
    try StorageError.onDisk { () throws(Errno) in
      let known = try SmallFile.read(
        companion, in: fd.rawValue, atMost: BlobName.longestCompanion)
      if known == spelling.text { return }
      try SmallFile.replace(
        companion, with: spelling.text, in: fd.rawValue, temporary: temporary,
        overwriting: true)
      // Before the entry, for without it the entry's name is lost.
      try Syscalls.synchronize(fd.rawValue)
    }
  }

  /// Removes the companion of an entry that is gone, unless another entry needs it. A failure
  /// leaves a file that nothing shows.
  package func removeCompanion(_ stored: StoredName) {
    guard let companion = stored.companion, !context.isReadOnly,
      let hash = BlobName.hash(ofCompanion: companion)
    else { return }
    do throws(StorageError) {
      let stem = hash + BlobName.long
      if try exists(FileName(Array(stem))) { return }
      if try exists(FileName(stem + BlobName.suffix)) { return }
      for other in try irregularEntries().values where other.companion == companion {
        if other == stored { continue }
        if try exists(other.entry) { return }
      }
      try StorageError.onDisk { () throws(Errno) in
        // Behind the entry: after a power cut the disk may still have that.
        try Syscalls.synchronize(fd.rawValue)
        try Syscalls.unlink(companion, in: fd.rawValue)
      }
    } catch {
      if case .system(.noSuchEntry) = error { return }
      Log.warning("the name file \(companion) of a removed entry could not be removed: \(error)")
    }
  }

  func exists(_ entry: FileName) throws(StorageError) -> Bool {
    try StorageError.onDisk { () throws(Errno) in try Syscalls.exists(entry, in: fd.rawValue) }
  }
}
