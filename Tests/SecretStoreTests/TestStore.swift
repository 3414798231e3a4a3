import Foundation
import Glibc
import Platform
import Testing

@testable import SecretStore

/// A store in a directory of its own, gone with the test.
final class TestStore: Sendable {
  let directory: String
  let store: FileSecretStore

  init() throws {
    var template = Array("\(NSTemporaryDirectory())/pv-store-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
    let parent = String(cString: try #require(made))
    directory = parent + "/home/accounts"
    store = FileSecretStore(directory: directory)
  }

  deinit {
    let parent = URL(filePath: directory).deletingLastPathComponent().deletingLastPathComponent()
    try? FileManager.default.removeItem(at: parent)
  }

  func path(_ user: String) -> String { "\(directory)/\(user).json" }

  func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
  }

  func item(_ user: String) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(filePath: path(user)))
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  func replaceItem(_ user: String, with item: [String: Any]) throws {
    try JSONSerialization.data(withJSONObject: item).write(to: URL(filePath: path(user)))
  }
}

extension Scrypt.Cost {
  /// The least that is taken: tests have many items to make.
  static let least = Scrypt.Cost(n: 1 << 14, r: 1, p: 1)
}

func secret(_ text: String) throws -> SecretBytes {
  var bytes = Array(text.utf8)
  return try SecretBytes(wiping: &bytes)
}

extension SecretBytes {
  func holds(_ text: String) -> Bool { withUnsafeBytes { $0.elementsEqual(text.utf8) } }
}

func makeAccount(
  _ user: String, secret text: String = "MARK-RECOVERY", password: String = "MARK-PASSWORD",
  vault: String = "/vaults/one", thisDeviceOnly: Bool = false, cost: Scrypt.Cost = .least
) throws -> Account {
  try Account(
    name: try AccountName(user), vaultID: Array(1...16), vaultPath: vault,
    thisDeviceOnly: thisDeviceOnly, secret: try secret(text), password: try secret(password),
    cost: cost)
}

/// The error that `body` throws, by its number; 0 for none.
func code(_ body: () throws -> Void) -> Int32 {
  do {
    try body()
    return 0
  } catch { return (error as? SecretStoreError)?.code ?? -1 }
}
