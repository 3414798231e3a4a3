import Glibc
import Platform
import VaultStorage

/// A directory that is exported, and where it goes.
final class ExportedDirectory: Sendable {
  let stored: VaultDirectory
  let target: ExportTarget
  /// Whether it goes with its own attributes: false for the directory that the user named.
  let isNamed: Bool

  init(_ stored: VaultDirectory, _ target: ExportTarget, isNamed: Bool) {
    self.stored = stored
    self.target = target
    self.isNamed = isNamed
  }
}

struct ExportedFile: Sendable {
  enum Kind: Sendable {
    case file
    case symbolicLink
  }

  /// In the vault.
  let path: FileName
  let directory: ExportedDirectory
  let entry: VaultDirectory.Listed
  let kind: Kind
  let size: Int64
}

/// All that is to be exported, found before the first byte is copied.
struct ExportTree {
  private(set) var directories: [ExportedDirectory] = []
  private(set) var files: [ExportedFile] = []
  /// Further names of files that are among `files`, by their index there.
  private(set) var links: [(file: ExportedFile, first: Int)] = []
  /// Names that can't be decoded, directories that can't be opened.
  private(set) var damaged: [(path: FileName, reason: String)] = []
  /// What is neither file, folder nor link.
  private(set) var others: [FileName] = []
  private(set) var fileCount = 0
  private(set) var byteCount: Int64 = 0

  private let vault: Vault
  private var firsts: [UInt64: Int] = [:]

  init(of vault: Vault) { self.vault = vault }

  /// Adds what `from` names, as `cp -r` would take it: "" is the whole vault.
  mutating func add(_ from: FileName, to top: ExportTarget) throws(CommandError) {
    guard let components = from.vaultComponents else {
      throw .usage("--from leads out of the vault", Export.name)
    }
    do throws(StorageError) {
      var directory = vault.root
      for component in components.dropLast() {
        guard let found = try directory.find(component) else { throw .system(.noSuchEntry) }
        directory = try directory.open(child: found.stored)
      }
      guard let last = components.last else {
        return walk(ExportedDirectory(directory, top, isNamed: false), .empty)
      }
      let path = FileName(Array(components.map(\.bytes).joined(separator: [UInt8(ascii: "/")])))
      let listed = try directory.list().first { $0.name == last }
      guard let listed else { throw .system(.noSuchEntry) }
      if listed.type == UInt8(DT_DIR) {
        let takesContents = from.meansContents
        let target = takesContents ? top : top.child(last)
        let inner = try directory.open(child: listed.stored)
        walk(ExportedDirectory(inner, target, isNamed: !takesContents), path)
      } else {
        add(listed, in: ExportedDirectory(directory, top, isNamed: false), path)
      }
    } catch {
      if case .system(let reason) = error {
        throw CommandError("'\(from)' in the vault", reason)
      }
      throw CommandError(vault: vault.path, error)
    }
  }

  private mutating func walk(_ top: ExportedDirectory, _ path: FileName) {
    var waiting = [(top, path)]
    while let (directory, path) = waiting.popLast() {
      directories.append(directory)
      let entries: [VaultDirectory.Listed]
      do throws(StorageError) {
        let survey = try directory.stored.survey()
        entries = survey.listed
        for name in survey.unreadable {
          damaged.append((path.appending(name), "its name can't be decoded"))
        }
      } catch {
        damaged.append((path, TransferFailure.vault(error).sentence))
        continue
      }
      for entry in entries.sorted(by: { $0.name.bytes.lexicographicallyPrecedes($1.name.bytes) }) {
        let inner = path.appending(entry.name)
        guard entry.type == UInt8(DT_DIR) else {
          add(entry, in: directory, inner)
          continue
        }
        do throws(StorageError) {
          waiting.append(
            (
              ExportedDirectory(
                try directory.stored.open(child: entry.stored), directory.target.child(entry.name),
                isNamed: true),
              inner
            ))
        } catch { damaged.append((inner, TransferFailure.vault(error).sentence)) }
      }
    }
  }

  private mutating func add(
    _ entry: VaultDirectory.Listed, in directory: ExportedDirectory, _ path: FileName
  ) {
    let number = directory.stored.fd.rawValue
    guard let status = try? Syscalls.status(of: entry.stored.entry, in: number) else { return }
    let isLink = entry.type == UInt8(DT_LNK)
    guard entry.kind == .blob || isLink else {
      others.append(path)
      return
    }
    let size =
      isLink
      ? 0
      : BlobSize.plaintextSize(of: entry.stored.entry, in: number, status, keys: vault.keys)
    let file = ExportedFile(
      path: path, directory: directory, entry: entry, kind: isLink ? .symbolicLink : .file,
      size: size)
    fileCount += 1
    if !isLink, status.st_nlink > 1 {
      if let first = firsts[entry.inode] {
        links.append((file, first))
        return
      }
      firsts[entry.inode] = files.count
    }
    byteCount += size
    files.append(file)
  }
}
