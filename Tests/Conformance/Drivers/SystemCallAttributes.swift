import CLinux
package import Platform

extension SystemCallDriver {
  package func extendedAttribute(
    _ subject: Subject, _ name: FileName
  ) throws(Errno) -> [UInt8] {
    try filled { buffer throws(Errno) in
      try name.withCString { cName throws(Errno) in
        switch subject {
        case .path(let path), .link(let path):
          try onPath(path) { pv_lgetxattr($0, cName, buffer.baseAddress, buffer.count) }
        case .handle(let handle):
          try check(pv_fgetxattr(fd(handle), cName, buffer.baseAddress, buffer.count))
        }
      }
    }
  }

  package func extendedAttributeNames(_ subject: Subject) throws(Errno) -> [FileName] {
    let list = try filled { buffer throws(Errno) in
      let text = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      return switch subject {
      case .path(let path), .link(let path):
        try onPath(path) { pv_llistxattr($0, text, buffer.count) }
      case .handle(let handle): try check(pv_flistxattr(fd(handle), text, buffer.count))
      }
    }
    return list.split(separator: 0).map { FileName(Array($0)) }
  }

  package func setExtendedAttribute(
    _ subject: Subject, _ name: FileName, _ value: [UInt8], flags: CInt
  ) throws(Errno) {
    _ = try name.withCString { cName throws(Errno) in
      switch subject {
      case .path(let path), .link(let path):
        try onPath(path) { text in
          value.withUnsafeBytes { pv_lsetxattr(text, cName, $0.baseAddress, $0.count, flags) }
        }
      case .handle(let handle):
        try check(
          value.withUnsafeBytes {
            pv_fsetxattr(fd(handle), cName, $0.baseAddress, $0.count, flags)
          })
      }
    }
  }

  package func removeExtendedAttribute(
    _ subject: Subject, _ name: FileName
  ) throws(Errno) {
    _ = try name.withCString { cName throws(Errno) in
      switch subject {
      case .path(let path), .link(let path): try onPath(path) { pv_lremovexattr($0, cName) }
      case .handle(let handle): try check(pv_fremovexattr(fd(handle), cName))
      }
    }
  }

  private func fd(_ handle: Handle) -> CInt { CInt(truncatingIfNeeded: handle.number) }

  private func filled(
    _ call: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  ) throws(Errno) -> [UInt8] {
    let largest = 65536  // XATTR_SIZE_MAX, XATTR_LIST_MAX
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: largest, alignment: 1)
    defer { buffer.deallocate() }
    return Array(buffer[..<(try call(buffer))])
  }
}
