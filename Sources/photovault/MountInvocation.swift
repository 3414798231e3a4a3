import Platform

/// How mount(8), /etc/fstab and pam_mount call this program.
///
/// mount.fuse3 runs `photovault USER DIR -o OPTIONS`; a link called `mount.photovault` or
/// `mount.fuse.photovault` is run as `LINK USER DIR [-sfnv] [-N SPACE] [-o OPTIONS] [-t TYPE]`.
enum MountInvocation {
  /// The words of `photovault mount`, nil if this is another way of calling. `name` is argv[0].
  static func words(_ name: FileName, _ words: [FileName]) -> [FileName]? {
    let base = name.lastComponent
    let isLink =
      base == FileName("mount.photovault") || base == FileName("mount.fuse.photovault")
    guard isLink || isFromMountFUSE(words) else { return nil }
    return [FileName("mount")] + translated(words)
  }

  private static func isFromMountFUSE(_ words: [FileName]) -> Bool {
    words.count == 4 && words[2] == FileName("-o") && !words[0].hasPrefix("-")
      && Commands.named(words[0].description) == nil
  }

  private static func translated(_ words: [FileName]) -> [FileName] {
    var result: [FileName] = []
    var rest = words[...]
    while let word = rest.popFirst() {
      switch word.description {
      case "-o":
        guard let list = rest.popFirst() else { break }
        result += [word, withoutImplied(list)]
      case "-t", "-N":
        _ = rest.popFirst()
      case let flags where flags.hasPrefix("-") && flags.dropFirst().allSatisfy("sfnv".contains):
        break
      default:
        result.append(word)
      }
    }
    return result
  }

  /// mount.fuse3 adds "dev" and "suid" unless told otherwise; photos need neither.
  private static func withoutImplied(_ list: FileName) -> FileName {
    let implied: [[UInt8]] = [Array("dev".utf8), Array("suid".utf8)]
    let options = list.bytes.split(separator: UInt8(ascii: ",")).filter { option in
      !implied.contains { $0.elementsEqual(option) }
    }
    return FileName(Array(options.joined(separator: [UInt8(ascii: ",")])))
  }
}
