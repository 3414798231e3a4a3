import Foundation
import Glibc
import Platform

@testable import VaultStorage

/// An empty vault that is copied for each test, and its keys: deriving them each time would take most of
/// the tests' time.
struct Template: Sendable {
  static let encrypted = Result { try Template(.encrypted) }
  static let plain = Result { try Template(.plain) }

  private let files: [String: Data]
  private let keys: VaultKeys

  private init(_ names: NamesMode) throws {
    let directory = NSTemporaryDirectory() + "/photovault-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var bytes = Array("recovery key of the tests".utf8)
    let password = try SecretBytes(wiping: &bytes)
    _ = try Vault.create(at: directory, names: names, password: password)
    keys = try Vault.open(at: directory, password: password, readOnly: true).keys
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
      files[name] = FileManager.default.contents(atPath: directory + "/" + name)
    }
    self.files = files
  }

  func make(at directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for (name, contents) in files {
      try contents.write(to: URL(fileURLWithPath: directory + "/" + name))
    }
  }

  func open(_ directory: String, readOnly: Bool = false) throws -> Vault {
    // A job of the pool may hold the vault for a moment after a failure.
    for _ in 0..<1000 {
      do throws(StorageError) {
        return try Vault.open(at: directory, readOnly: readOnly) { _ in keys }
      } catch {
        guard case .alreadyOpen = error else { throw error }
        usleep(1000)
      }
    }
    throw StorageError.alreadyOpen
  }

  func check(_ directory: String) throws -> VaultCheck.Report {
    try VaultCheck.open(at: directory, repairing: false) { _ in keys }
      .run(threadCount: 1, everyMilliseconds: 1000)
  }
}
