import FoundationEssentials
import Platform

/// Small records as one line of JSON, between processes of this program and in files of theirs.
enum JSONMessage {
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Encoding fails for numbers that aren't finite; there are none in these records.
    return (try? encoder.encode(value)).map { Array($0) } ?? []
  }

  /// nil if it is anything else.
  static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: some Sequence<UInt8>
  ) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }

  /// The value and a line break. Throws EPIPE where nobody reads.
  static func write(_ value: some Encodable, to fd: CInt) throws(Errno) {
    let line = encode(value) + [UInt8(ascii: "\n")]
    try line.withUnsafeBufferPointer { bytes throws(Errno) in
      try Syscalls.write(fd, UnsafeRawBufferPointer(bytes))
    }
  }

  static func text(_ value: some Encodable) -> String {
    String(decoding: encode(value), as: UTF8.self)
  }
}
