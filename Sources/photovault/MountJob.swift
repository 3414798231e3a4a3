import FUSESession
import Glibc
import Platform
import SessionMonitor
import VaultFileSystem
import VaultStorage

/// All a mount's process has to know, except the recovery key.
struct MountJob: Codable, Sendable {
  let user: String
  let vault: String
  let vaultID: [UInt8]
  /// See `MountPoint.resolve`.
  let mountPoint: String
  /// By a mount that ended without removing it.
  let mountPointWasMade: Bool
  let options: MountOptions
  let lockMark: LockMark

  /// Mounts, calls `ready`, answers until the mount ends. The vault's lock goes and its keys are
  /// wiped before this returns: the memory of a process that ended is not overwritten at once.
  func run(
    recoveryKey: consuming SecretBytes, ready: @escaping @Sendable () -> Void
  ) throws(CommandError) -> ExitCode {
    MountedVault.blockSignals()
    ProcessHardening.raiseDescriptorLimit()
    ProcessHardening.lockMemory()
    ProcessHardening.limitHeaps()
    var keys = LastReference()
    let code = try serve(recoveryKey, &keys, ready)
    if !keys.isGone(withinMilliseconds: Self.wipeMilliseconds) {
      Log.error("the keys of \(mountPoint) were still in use at the end of the process")
    }
    return code
  }

  /// Threads that are just ending let go of the keys within moments.
  private static let wipeMilliseconds = 1_000

  /// Whether a vault's keys are wiped, which they are with the last reference to them.
  private struct LastReference: ~Copyable {
    weak var keys: VaultKeys?

    func isGone(withinMilliseconds limit: Int) -> Bool {
      for _ in 0..<limit {
        if keys == nil { return true }
        usleep(1_000)
      }
      return keys == nil
    }
  }

  private func serve(
    _ recoveryKey: consuming SecretBytes, _ keys: inout LastReference,
    _ ready: @escaping @Sendable () -> Void
  ) throws(CommandError) -> ExitCode {
    let vault = try openVault(recoveryKey)
    _ = consume recoveryKey
    keys.keys = vault.keys
    let fileSystem = FileSystem(vault: vault, isShared: isShared)
    let session: Session
    do throws(Session.Failure) {
      session = try Session(
        fileSystem,
        Session.Options(source: source, mountOptions: mountOptions))
    } catch { throw Self.refused(error, mountPoint) }
    let registry = try MountRegistry.own()
    let newMounts = try NewMounts(of: source)
    do throws(CommandError) {
      return try mount(fileSystem, session, newMounts, registry, ready)
    } catch {
      session.destroy()
      newMounts.detachDead()
      registry.remove(mountPoint)
      throw error
    }
  }

  /// Throws only before the mount stands.
  private func mount(
    _ fileSystem: FileSystem, _ session: Session, _ newMounts: NewMounts,
    _ registry: MountRegistry, _ ready: @escaping @Sendable () -> Void
  ) throws(CommandError) -> ExitCode {
    var place = try MountPoint(mountPoint, options, wasMadeBefore: mountPointWasMade)
    let record = MountRecord(
      user: user, mountPoint: mountPoint, vault: vault, process: getpid(), since: time(nil),
      mountPointWasMade: place.wasMade, lockGraceSeconds: options.lockGraceSeconds)
    let socket = try about("the control socket") { () throws(Errno) in
      try ControlSocket.listen(registry, mountPoint)
    }
    let watcher = try about("starting a second process") { () throws(Errno) in
      try MountWatcher(record, registry)
    }
    let watch = try about("watching the session") { () throws(Errno) in
      try SessionWatch(SessionWatch.Options(options))
    }
    try place.mount(expecting: newMounts) { target throws(CommandError) in
      do throws(Session.Failure) { try session.mount(at: target) } catch {
        throw Self.refused(error, mountPoint, shownAs: target)
      }
    }
    do throws(CommandError) { try registry.add(record) } catch {
      // Mounted all the same: umount(8) and signals end it.
      Log.warning("'photovault status' will not find this mount: \(error.message)")
    }
    if !options.keepsThumbnails { DesktopTraces.expect(of: mountPoint) }
    let mounted = MountedVault(fileSystem, session, record, options, watch, lockMark)
    let code = mounted.serve(place, registry, socket) {
      if options.excludesFromBackup { BackupExclusion.mark(mountPoint) }
      ready()
    }
    _ = consume watcher
    return code
  }

  private func openVault(_ recoveryKey: borrowing SecretBytes) throws(CommandError) -> Vault {
    do throws(StorageError) {
      let opened = try Vault.open(
        at: vault, password: recoveryKey, readOnly: options.isReadOnly)
      guard opened.id == vaultID else { throw StorageError.notAVault("another vault is there") }
      return opened
    } catch { throw CommandError(vault: vault, error, of: user) }
  }

  private var isShared: Bool {
    options.passedOn.contains { $0 == "allow_other" || $0 == "allow_root" }
  }

  private var source: String { "photovault:\(user)" }

  private var mountOptions: [String] {
    options.passedOn + (options.isReadOnly ? ["ro"] : [])
  }

  private static func refused(
    _ failure: Session.Failure, _ path: String, shownAs target: FileName? = nil
  ) -> CommandError {
    switch failure {
    case .system(let error):
      return CommandError("cannot mount at \(path)", error)
    case .message(var said):
      if let target { said = said.replacing(target.description, with: path) }
      let isAboutPlace = said.contains("mountpoint") || said.contains("mount point")
      return CommandError(
        isAboutPlace ? .mountPointUnusable : .failed, "cannot mount at \(path): \(said)",
        hint: hint(said))
    }
  }

  private static func hint(_ said: String) -> String? {
    if said.contains("user_allow_other") {
      return "root has to put the line 'user_allow_other' into /etc/fuse.conf"
    }
    if said.contains("exec fusermount3") { return "install the package fuse3" }
    if said.contains("/dev/fuse") || said.contains("device not found") {
      return "this machine or container offers no FUSE: see 'photovault doctor'"
    }
    if said.contains("no write access") || said.contains("not owned by user") {
      return "the directory has to be your own: choose another, or let root run chown on it"
    }
    return "'photovault doctor' says whether this machine can mount"
  }
}
