import Platform
import SecuredData

extension StorageError {
  /// Carries an error of the disk up.
  @inline(__always)
  static func onDisk<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(StorageError) -> Result {
    do throws(Errno) { return try body() } catch { throw .system(error) }
  }

  /// Carries an error of OpenSSL up.
  @inline(__always)
  static func inCrypto<Result: ~Copyable>(
    _ body: () throws(CryptoFailure) -> Result
  ) throws(StorageError) -> Result {
    do throws(CryptoFailure) { return try body() } catch { throw .crypto(error) }
  }
}
