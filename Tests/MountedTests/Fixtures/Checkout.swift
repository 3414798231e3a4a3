import Glibc

/// Where the program under test and the project's scripts are.
enum Checkout {
  static let top = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
  static let scripts = top + "/scripts"
  static let workloads = top + "/Tests/MountedTests/Workloads"

  /// The program built along with these tests: it lies beside their own binary.
  static let program: String = {
    if let other = Environment["PHOTOVAULT_TEST_PROGRAM"] { return other }
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(
      decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return own.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/photovault"
  }()
}
