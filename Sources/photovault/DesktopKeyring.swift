import Glibc
import Platform
import SecretStore

/// The keyring of the desktop that this program runs in, and the passwords that it remembers.
enum DesktopKeyring {
  static let keyring = Keyring(hasBus: hasSessionBus) {
    Terminal.note("photovault: the keyring is locked: waiting for it to be unlocked")
  }

  /// Where GLib finds a bus without starting one.
  private static var hasSessionBus: Bool {
    if let address = getenv("DBUS_SESSION_BUS_ADDRESS"), address.pointee != 0 { return true }
    guard let directory = getenv("XDG_RUNTIME_DIR"), directory.pointee != 0 else { return false }
    let socket = FileName(FileName(cString: directory).bytes + "/bus".utf8)
    return (try? Syscalls.statusBehindLinks(of: socket)) != nil
  }

  static func passwords(_ home: Home) -> RememberedPasswords {
    RememberedPasswords(directory: home.accounts, keyring: keyring)
  }

  /// Keeps a password that was right. Throws what the keyring answers.
  static func keep(
    _ password: borrowing SecretBytes, for account: Account, _ home: Home
  ) throws(CommandError) {
    do throws(SecretStoreError) { try passwords(home).keep(password, for: account) } catch {
      throw CommandError(account.name.text, error)
    }
  }

  static func forget(_ name: AccountName, _ home: Home) throws(CommandError) {
    do throws(SecretStoreError) { try passwords(home).forget(name) } catch {
      throw CommandError(name.text, error)
    }
  }

  /// Puts the new password of an account in the place of a remembered one. The account has its new
  /// password already, so what goes wrong here is a warning.
  static func passwordChanged(
    to password: borrowing SecretBytes, of account: Account, _ home: Home
  ) {
    do throws(SecretStoreError) {
      let passwords = passwords(home)
      guard try passwords.holdsOne(for: account.name) else { return }
      try passwords.keep(password, for: account)
    } catch {
      Terminal.warning(
        "the keyring still holds the former password of '\(account.name)': "
          + CommandError(account.name.text, error).message,
        hint: "'photovault mount --remember \(account.name)' replaces it, '--forget' removes it")
    }
  }

  /// For an account that is gone: what goes wrong is a warning.
  static func accountRemoved(_ name: AccountName, _ home: Home) {
    do throws(CommandError) { try forget(name, home) } catch {
      Terminal.warning(
        "the keyring may still hold the password of '\(name)': \(error.message)",
        hint: "remove 'photovault password of \(name)' there with the desktop's password manager")
    }
  }
}
