/// Files that are written and wait for their names: as many as go to the disk well together, and as
/// few as can be lost without much being done again.
struct PendingItems<Item> {
  private var items: [Item] = []
  private var byteCount: Int64 = 0

  private static var itemLimit: Int { 64 }
  private static var byteLimit: Int64 { 64 << 20 }

  var isFull: Bool { items.count >= Self.itemLimit || byteCount >= Self.byteLimit }

  mutating func add(_ item: Item, bytes: Int64) {
    items.append(item)
    byteCount += bytes
  }

  mutating func takeAll() -> [Item] {
    defer { self = Self() }
    return items
  }
}
