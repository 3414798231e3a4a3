import CFUSE
import Glibc
import Platform
import VaultFileSystem

/// What works on an open file.
extension Operations {
  static func addFiles(to table: inout fuse_lowlevel_ops) {
    table.create = { raw, parent, name, mode, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        let (entry, opened) = try request.fileSystem.create(
          FileName(component: name), in: parent, mode: mode, flags: info.pointee.flags,
          caller: request.caller)
        request.reply(entry, opened, &info.pointee)
      } catch { request.reply(error) }
    }
    table.open = { raw, node, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        if info.pointee.flags & O_TRUNC != 0 {
          try request.fileSystem.dropSetID(of: node, for: request.caller, isOpen: false)
        }
        let opened = try request.fileSystem.open(node, flags: info.pointee.flags)
        request.reply(opened, &info.pointee)
      } catch { request.reply(error) }
    }
    table.read = { raw, _, size, offset, info in Operations.read(raw, size, offset, info) }
    table.write = { raw, _, bytes, size, offset, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        try request.fileSystem.dropSetID(ofOpen: info.pointee.fh, for: request.caller)
        let count = try request.fileSystem.write(
          info.pointee.fh, UnsafeRawBufferPointer(start: bytes, count: size), at: Int64(offset))
        request.reply(written: count)
      } catch { request.reply(error) }
    }
    table.flush = { raw, _, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        try request.fileSystem.flush(info.pointee.fh)
        request.reply()
      } catch { request.reply(error) }
    }
    table.fsync = { raw, _, dataOnly, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        try request.fileSystem.synchronize(info.pointee.fh, dataOnly: dataOnly != 0)
        request.reply()
      } catch { request.reply(error) }
    }
    table.release = { raw, _, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      request.fileSystem.release(info.pointee.fh)
      request.reply()
    }
    table.fallocate = { raw, _, mode, offset, length, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        try request.fileSystem.dropSetID(ofOpen: info.pointee.fh, for: request.caller)
        try request.fileSystem.allocate(
          info.pointee.fh, mode: mode, offset: Int64(offset), length: Int64(length))
        request.reply()
      } catch { request.reply(error) }
    }
    table.lseek = { raw, _, offset, whence, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        let found = try request.fileSystem.seek(
          info.pointee.fh, offset: Int64(offset), whence: whence)
        request.reply(offset: found)
      } catch { request.reply(error) }
    }
  }

  private static func read(
    _ raw: fuse_req_t?, _ size: Int, _ offset: off_t, _ info: UnsafeMutablePointer<fuse_file_info>?
  ) {
    let replied: Void? = ReplyBuffer.with(size: size) { buffer in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        let count = try request.fileSystem.read(info.pointee.fh, into: buffer, at: Int64(offset))
        request.reply(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      } catch { request.reply(error) }
    }
    if replied == nil { Request(raw).reply(.noMemory) }
  }
}
