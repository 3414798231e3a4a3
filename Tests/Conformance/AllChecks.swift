import Glibc

extension Check {
  /// Every check, in the order of their files.
  package static let all: [Check] =
    OpenChecks.all + WriteChecks.all + TruncateChecks.all + RenameChecks.all
    + RenameOpenChecks.all + UnlinkChecks.all + LinkChecks.all + DirectoryChecks.all
    + SymbolicLinkChecks.all + AttributeChecks.all + TimeChecks.all + ExtendedAttributeChecks.all
    + ListingChecks.all + NameChecks.all + SpaceChecks.all + MappingChecks.all
    + SystemCallChecks.all + RandomChecks.all

  /// Those that a driver without a mount point can do.
  package static var withoutMount: [Check] { selected.filter { $0.needs == .anyDriver } }

  /// All, or those whose name contains $CONFORMANCE_CHECK: for working on one.
  package static var selected: [Check] {
    guard let wanted = getenv("CONFORMANCE_CHECK").map({ String(cString: $0) }) else { return all }
    return all.filter { $0.name.contains(wanted) }
  }
}
