import Platform
import RuntimeLibraries
import SecretStore
import Synchronization
import VaultStorage

/// Copies files into a vault without a mount.
enum Import: Command {
  static let name = "import"
  static let summary = "copy photos into a vault without a mount; verified"
  static let usage = "USER SOURCE..."
  static let options =
    [
      OptionSpec("into", value: "PATH", help: "the folder of the vault that they go to"),
      OptionSpec("move", help: "delete each source once it is safe in the vault"),
      OptionSpec("on-conflict", value: "HOW", help: ConflictPolicy.help),
      OptionSpec("skip-duplicates", help: "leave out what the vault holds under another name"),
      OptionSpec("by-date", help: "sort into YYYY/MM by the date in the picture"),
      OptionSpec("name-by-content", help: "add the extension that the contents ask for"),
    ] + OptionSpec.secret("blob-password", "the password of blobs")
    + OptionSpec.secret("password", "the password")
  static let notes = """
    Folders come with all that is in them; of "FOLDER/", what is in it. Each file is
    read back and compared before it shows. What is there already is skipped, so run
    it again to go on. With a blob password, .securedData files are decrypted.
    """
  static let takesRawPaths = true

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(2...Int.max, of: self)[0]
    let sources = Array(arguments.rawPositionals.dropFirst())
    guard !sources.contains(.empty) else { throw .usage("an empty name is no file's", name) }
    let options = try options(arguments)
    let into = (arguments.rawValue(of: "into") ?? .empty).vaultComponents
    guard let into else { throw .usage("--into leads out of the vault", name) }
    let home = try Home(arguments)
    let account = try Accounts.lookUp(user, home: home)
    try TransferPaths.refuse(sources, vault: account.vaultPath, home: home.path)
    let blobPassword = try PasswordSource.given(arguments, option: "blob-password")
    let password = try PasswordSource.password(arguments, prompt: "password for \(user)")
    let unlocked = try Accounts.unlock(account, password: password)
    let vault = try open(unlocked)
    ProcessHardening.raiseDescriptorLimit()

    let root = TargetDirectory.top(of: vault, policy: options.conflicts)
    defer { root.letGo() }
    var top = root
    for component in into { top = top.child(component) }
    var secret: BlobPassword?
    if let blobPassword { secret = BlobPassword(blobPassword) }
    var tree = SourceTree(opensBlobs: secret != nil)
    for source in sources { tree.add(source, to: options.sortsByDate ? nil : top) }
    tree.groupSingles()
    if options.sortsByDate { try requireLibraries(for: tree) }
    for problem in tree.problems {
      Terminal.note(Terminal.clean("failed: \(problem.path): \(problem.reason)"))
    }
    let importer = Importer(
      tree, into: top, of: vault, contents: VaultContents(of: vault), password: secret,
      options: options)
    importer.tally.withLock { $0.failed += tree.problems.count }
    let signal = try importer.run.run { importer.work() }
    importer.finishDirectories(interrupted: signal != nil || importer.run.failure != nil)
    return try end(importer, user: user, signal: signal)
  }

  private static func end(
    _ importer: Importer, user: String, signal: CInt?
  ) throws(CommandError) -> ExitCode {
    let tally = importer.tally.withLock { $0 }
    for line in TransferText.lines(tally, user: user) { try Terminal.print(line) }
    if let signal {
      Terminal.note(
        "stopped; run the same command again to go on: what is in the vault is skipped then")
      return TransferRun.end(by: signal)
    }
    if let failure = importer.run.failure { throw failure }
    return tally.isComplete ? .done : .failed
  }

  private static func options(_ arguments: Arguments) throws(CommandError) -> ImportOptions {
    var options = ImportOptions()
    options.conflicts = try ConflictPolicy(arguments, name)
    options.moves = arguments.has("move")
    options.sortsByDate = arguments.has("by-date")
    options.namesByContent = arguments.has("name-by-content")
    options.skipsDuplicates = arguments.has("skip-duplicates")
    if options.sortsByDate, !Exif.isAvailable { throw missing("libexif12", "--by-date") }
    return options
  }

  private static func requireLibraries(for tree: SourceTree) throws(CommandError) {
    if Heif.isAvailable { return }
    let isPhonePicture = tree.groups.contains { group in
      group.files.contains { ["heic", "heif", "hif"].contains($0.name.lowercaseExtension) }
    }
    if isPhonePicture { throw missing("libheif1", "--by-date of HEIC pictures") }
  }

  private static func missing(_ package: String, _ purpose: String) -> CommandError {
    CommandError(
      .failed, "\(purpose) needs the library of the package \(package)",
      hint: "install it: apt install \(package)")
  }

  private static func open(
    _ unlocked: borrowing UnlockedAccount
  ) throws(CommandError) -> Vault {
    do throws(CommandError) { return try unlocked.openVault(readOnly: false) } catch {
      guard error.exitCode == .alreadyMounted else { throw error }
      throw CommandError(
        .alreadyMounted, error.message,
        hint: "copy into the folder instead ('photovault status' says where it is), or "
          + "'photovault unmount \(unlocked.account.name)' first")
    }
  }
}

/// What must not be copied from where.
enum TransferPaths {
  /// Refuses sources that hold the vault or the accounts, or lie in the vault.
  static func refuse(
    _ sources: [FileName], vault: String, home: String
  ) throws(CommandError) {
    guard let vaultChain = try? DirectoryChain(of: FileName(vault)) else { return }
    let accounts = try? DirectoryChain(of: FileName(home))
    for source in sources {
      // What can't be opened is said later.
      guard let chain = try? DirectoryChain(of: source, followingLinks: false) else { continue }
      if chain.isInside(vaultChain) {
        throw CommandError(
          .failed, "\(source) lies in the vault itself",
          hint: "mount it, or 'photovault export', to get at the photos")
      }
      if chain.isOfDirectory, vaultChain.isInside(chain) || accounts?.isInside(chain) == true {
        throw CommandError(
          .failed, "\(source) holds photovault's own files: \(vault)",
          hint: "name the folders in it that shall be imported")
      }
    }
  }
}
