import Glibc

/// Settings of a longer run.
enum Environment {
  static subscript(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
