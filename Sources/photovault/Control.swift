import Glibc
import Platform

/// What other commands say to a mount's process over its socket, one packet each way.
struct ControlRequest: Codable, Sendable {
  enum Verb: String, Codable {
    case status
    /// Unless a program holds files.
    case unmount
    case lock
  }

  let verb: Verb
}

struct ControlReply: Codable, Sendable {
  enum Outcome: String, Codable {
    case done, busy, failed
    /// Locked, but not everything that belongs to it could be done.
    case incomplete
  }

  var outcome = Outcome.done
  /// Names of files whose last changes could not be saved.
  var unsaved: [String] = []
  /// Why it failed.
  var message: String?
  var idleSeconds = 0
  var idleLimitSeconds = 0
  var isReadOnly = false
}

enum ControlSocket {
  static let greatestPacket = 1 << 16

  /// A listening socket in the directory `registry`, in place of one that a dead process left.
  static func listen(
    _ registry: MountRegistry, _ mountPoint: String
  ) throws(Errno) -> FileDescriptor {
    let name = MountRegistry.socketName(mountPoint)
    let socket = try make()
    let directory = try registry.open()
    unlinkat(directory.rawValue, name, 0)
    try withAddress(directory.rawValue, name) { address, size in
      bind(socket.rawValue, address, size)
    }
    if Glibc.listen(socket.rawValue, 16) != 0 { throw .current }
    return socket
  }

  /// Throws ECONNREFUSED or ENOENT where no process is behind it any more.
  static func connect(
    _ registry: MountRegistry, _ mountPoint: String
  ) throws(Errno) -> FileDescriptor {
    let socket = try make()
    let directory = try registry.open()
    try withAddress(directory.rawValue, MountRegistry.socketName(mountPoint)) { address, size in
      Glibc.connect(socket.rawValue, address, size)
    }
    return socket
  }

  static func send(_ value: some Encodable, to socket: CInt) throws(Errno) {
    let bytes = JSONMessage.encode(value)
    if Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) < 0 { throw .current }
  }

  /// nil for an end or anything else that is no `type`.
  static func receive<Value: Decodable>(_ type: Value.Type, from socket: CInt) -> Value? {
    var bytes = [UInt8](repeating: 0, count: greatestPacket)
    var count = -1
    repeat { count = recv(socket, &bytes, bytes.count, 0) } while count < 0 && errno == EINTR
    return count > 0 ? JSONMessage.decode(type, from: bytes[..<count]) : nil
  }

  private static func make() throws(Errno) -> FileDescriptor {
    let number = socket(
      AF_UNIX, CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    if number < 0 { throw .current }
    return FileDescriptor(owning: number)
  }

  /// The path leads through the open directory: an address has room for 107 bytes only.
  private static func withAddress(
    _ directory: CInt, _ name: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) throws(Errno) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array("/proc/self/fd/\(directory)/\(name)".utf8)
    precondition(path.count < MemoryLayout.size(ofValue: address.sun_path))
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    if result != 0 { throw .current }
  }
}
