extension Bus {
  private static let service = "org.freedesktop.DBus"
  private static let path = "/org/freedesktop/DBus"

  /// Tells each new owner of the well-known name; nil: it has none any more.
  func watchOwner(of name: String, _ handler: @escaping (String?) -> Void) {
    watch(
      "type='signal',sender='\(Self.service)',interface='\(Self.service)',"
        + "member='NameOwnerChanged',arg0='\(name)'"
    ) { message in
      guard message.sender == Self.service, message.string() == name, message.string() != nil,
        let owner = message.string()
      else { return }
      handler(owner.isEmpty ? nil : owner)
    }
  }

  /// The owner of the well-known name; nobody is started.
  func owner(of name: String, _ handler: @escaping (String?) -> Void) {
    call(Self.service, Self.path, Self.service, "GetNameOwner", [.string(name)]) { answer in
      handler(answer.flatMap { $0.isError ? nil : $0.string() })
    }
  }
}
