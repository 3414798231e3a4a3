import CFUSE
import Glibc
import Platform
import VaultFileSystem

/// The C callbacks: each reads its arguments, calls the file system and replies.
///
/// Not set, so that the kernel does them or refuses: locks (it does them), copy_file_range (it
/// copies), O_TMPFILE (EOPNOTSUPP), poll, ioctl, bmap.
enum Operations {
  static var table: fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    table.`init` = { _, connection in
      if let connection { Connection.configure(&connection.pointee) }
    }
    addNames(to: &table)
    addNodes(to: &table)
    addFiles(to: &table)
    addDirectories(to: &table)
    addExtendedAttributes(to: &table)
    return table
  }

  private static func addNames(to table: inout fuse_lowlevel_ops) {
    table.lookup = { raw, parent, name in
      let request = Request(raw)
      do throws(FileSystemError) {
        let entry = try request.fileSystem.lookup(FileName(component: name), in: parent)
        request.reply(entry)
      } catch { request.reply(error) }
    }
    table.mknod = { raw, parent, name, mode, device in
      let request = Request(raw)
      do throws(FileSystemError) {
        let entry = try request.fileSystem.makeNode(
          FileName(component: name), in: parent, mode: mode, device: device,
          caller: request.caller)
        request.reply(entry)
      } catch { request.reply(error) }
    }
    table.mkdir = { raw, parent, name, mode in
      let request = Request(raw)
      do throws(FileSystemError) {
        let entry = try request.fileSystem.makeDirectory(
          FileName(component: name), in: parent, mode: mode, caller: request.caller)
        request.reply(entry)
      } catch { request.reply(error) }
    }
    table.symlink = { raw, target, parent, name in
      let request = Request(raw)
      do throws(FileSystemError) {
        let entry = try request.fileSystem.makeSymbolicLink(
          FileName(component: name), in: parent, target: FileName(target),
          caller: request.caller)
        request.reply(entry)
      } catch { request.reply(error) }
    }
    table.link = { raw, node, parent, name in
      let request = Request(raw)
      do throws(FileSystemError) {
        let entry = try request.fileSystem.link(
          node, as: FileName(component: name), in: parent)
        request.reply(entry)
      } catch { request.reply(error) }
    }
    table.unlink = { raw, parent, name in
      let request = Request(raw)
      do throws(FileSystemError) {
        try request.fileSystem.unlink(FileName(component: name), in: parent)
        request.reply()
      } catch { request.reply(error) }
    }
    table.rmdir = { raw, parent, name in
      let request = Request(raw)
      do throws(FileSystemError) {
        try request.fileSystem.removeDirectory(FileName(component: name), in: parent)
        request.reply()
      } catch { request.reply(error) }
    }
    table.rename = { raw, parent, name, newParent, newName, flags in
      let request = Request(raw)
      do throws(FileSystemError) {
        try request.fileSystem.rename(
          FileName(component: name), in: parent, to: FileName(component: newName),
          in: newParent, flags: Syscalls.RenameFlags(rawValue: flags))
        request.reply()
      } catch { request.reply(error) }
    }
  }

  private static func addNodes(to table: inout fuse_lowlevel_ops) {
    table.forget = { raw, node, count in
      let request = Request(raw)
      request.fileSystem.forget(node, count: count)
      request.finish()
    }
    table.forget_multi = { raw, count, forgets in
      let request = Request(raw)
      for forget in UnsafeBufferPointer(start: forgets, count: count) {
        request.fileSystem.forget(forget.ino, count: forget.nlookup)
      }
      request.finish()
    }
    table.getattr = { raw, node, _ in
      let request = Request(raw)
      do throws(FileSystemError) {
        let attributes = try request.fileSystem.attributes(node)
        request.reply(attributes: attributes)
      } catch { request.reply(error) }
    }
    table.access = { raw, node, mask in
      let request = Request(raw)
      do throws(FileSystemError) {
        try request.fileSystem.checkAccess(FileSystem.Access(rawValue: mask), to: node)
        request.reply()
      } catch { request.reply(error) }
    }
    table.setattr = { raw, node, attributes, mask, info in
      let request = Request(raw)
      guard let attributes else { return request.reply(.invalidArgument) }
      let changes = AttributeChanges(attributes.pointee, mask: mask)
      do throws(FileSystemError) {
        if changes.size != nil {
          try request.fileSystem.dropSetID(
            of: node, for: request.caller, isOpen: info != nil)
        }
        let changed = try request.fileSystem.setAttributes(
          node, changes, isOpen: info != nil)
        request.reply(attributes: changed)
      } catch { request.reply(error) }
    }
    table.readlink = { raw, node in
      let request = Request(raw)
      do throws(FileSystemError) {
        let target = try request.fileSystem.readSymbolicLink(node)
        request.reply(linkTarget: target)
      } catch { request.reply(error) }
    }
    table.statfs = { raw, _ in
      let request = Request(raw)
      do throws(FileSystemError) {
        let status = try request.fileSystem.status()
        request.reply(status: status)
      } catch { request.reply(error) }
    }
  }
}
