import CFUSE
import Glibc
import Platform
import VaultFileSystem

/// What works on an open directory, and extended attributes.
extension Operations {
  static func addDirectories(to table: inout fuse_lowlevel_ops) {
    table.opendir = { raw, node, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        let opened = try request.fileSystem.openDirectory(node)
        request.reply(directory: opened, &info.pointee)
      } catch { request.reply(error) }
    }
    table.readdirplus = { raw, _, size, offset, info in
      Operations.readDirectory(raw, size, offset, info)
    }
    table.releasedir = { raw, _, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      request.fileSystem.releaseDirectory(info.pointee.fh)
      request.reply()
    }
    table.fsyncdir = { raw, _, _, info in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      do throws(FileSystemError) {
        try request.fileSystem.synchronizeDirectory(info.pointee.fh)
        request.reply()
      } catch { request.reply(error) }
    }
  }

  private static func readDirectory(
    _ raw: fuse_req_t?, _ size: Int, _ offset: off_t, _ info: UnsafeMutablePointer<fuse_file_info>?
  ) {
    let replied: Void? = ReplyBuffer.with(size: size) { buffer in
      let request = Request(raw)
      guard let info else { return request.reply(.invalidArgument) }
      var listing = DirectoryListing(into: buffer)
      do throws(FileSystemError) {
        try request.fileSystem.readDirectory(
          info.pointee.fh, from: Int64(offset), withAttributes: true
        ) { entry in listing.add(entry, request) }
        request.reply(listing)
      } catch {
        // What is listed is owed; the kernel asks again from there and then gets the error.
        if listing.nodes.isEmpty { request.reply(error) } else { request.reply(listing) }
      }
    }
    if replied == nil { Request(raw).reply(.noMemory) }
  }

  static func addExtendedAttributes(to table: inout fuse_lowlevel_ops) {
    table.getxattr = { raw, node, name, capacity in
      let request = Request(raw)
      let name = FileName(name)
      do throws(FileSystemError) {
        try AttributeClass(name).checkStored()
        let value = try request.fileSystem.extendedAttribute(node, name)
        request.reply(value: value, capacity: capacity)
      } catch { request.reply(error) }
    }
    table.listxattr = { raw, node, capacity in
      let request = Request(raw)
      do throws(FileSystemError) {
        let names = try request.fileSystem.extendedAttributeNames(node)
        request.reply(value: names.flatMap { $0.bytes + [0] }, capacity: capacity)
      } catch { request.reply(error) }
    }
    table.setxattr = { raw, node, name, value, size, flags in
      let request = Request(raw)
      let name = FileName(name)
      do throws(FileSystemError) {
        try AttributeClass(name).checkStored()
        let value = Array(UnsafeRawBufferPointer(start: value, count: size))
        try request.fileSystem.setExtendedAttribute(node, name, value, flags: flags)
        request.reply()
      } catch { request.reply(error) }
    }
    table.removexattr = { raw, node, name in
      let request = Request(raw)
      let name = FileName(name)
      do throws(FileSystemError) {
        try AttributeClass(name).checkStored()
        try request.fileSystem.removeExtendedAttribute(node, name)
        request.reply()
      } catch { request.reply(error) }
    }
  }
}
