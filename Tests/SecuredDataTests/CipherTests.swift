import Platform
import SecuredData
import Testing

@Suite struct CBCTests {
  /// Source: NIST SP 800-38A, F.2.5.
  private let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
  private let iv = Array(0...15) as [UInt8]
  private let plaintext = hex(
    """
    6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
    30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710
    """)
  private let ciphertext = hex(
    """
    f58c4c04d6e5f1ba779eabfb5f7bfbd6 9cfc4e967edb808d679f777bc6702c7d
    39f23369a9d9bacfa530e26304231461 b2eb05e2c39be9fcda6c19078c6a9d1b
    """)

  private func cipher(_ direction: CBC.Direction) throws -> CBC {
    try key.withUnsafeBytes { key in
      try iv.withUnsafeBytes { try CBC(direction, key: key, iv: $0) }
    }
  }

  private func run(_ cipher: CBC, _ bytes: [UInt8]) throws -> [UInt8] {
    var result = bytes
    try result.withUnsafeMutableBytes { try cipher.update(UnsafeRawBufferPointer($0), into: $0) }
    return result
  }

  @Test func agreesWithNISTsTable() throws {
    #expect(try run(try cipher(.encrypt), plaintext) == ciphertext)
    #expect(try run(try cipher(.decrypt), ciphertext) == plaintext)
  }

  @Test func theChainGoesOnFromCallToCall() throws {
    for (direction, input, output) in [
      (CBC.Direction.encrypt, plaintext, ciphertext), (.decrypt, ciphertext, plaintext),
    ] {
      let cipher = try cipher(direction)
      let first = try run(cipher, Array(input.prefix(16)))
      let second = try run(cipher, Array(input.dropFirst(16)))
      #expect(first + second == output)
      #expect(try run(cipher, []) == [])
    }
  }

  @Test func restartingBeginsAnewAndACopyGoesOnAlone() throws {
    let cipher = try cipher(.encrypt)
    _ = try run(cipher, Array(plaintext.prefix(32)))
    let copy = try cipher.copy()
    try iv.withUnsafeBytes { try cipher.restart(iv: $0) }
    #expect(try run(copy, Array(plaintext.dropFirst(32))) == Array(ciphertext.dropFirst(32)))
    #expect(try run(cipher, plaintext) == ciphertext)
  }
}

/// Messages under key 00 01 02 ... and the nonce; computed with Python's cryptography (AESGCM).
@Suite struct GCMTests {
  struct Vector: Sendable {
    let nonce: UInt64
    let plaintext: [UInt8]
    let ciphertext: String
    let tag: String
    /// The tag over `plaintext` as data that isn't encrypted.
    let mac: String
  }

  static let vectors = [
    Vector(
      nonce: 0, plaintext: [], ciphertext: "", tag: "f05d76ae4ab99fe5a6f69b3148c2363d",
      mac: "f05d76ae4ab99fe5a6f69b3148c2363d"),
    Vector(
      nonce: 0, plaintext: [UInt8](repeating: 0, count: 16),
      ciphertext: "0ebcb5deb52c83bd08a8a935182c9199", tag: "3862642986c953e87b3ce99b0decdf34",
      mac: "470b877f0234d01736f62d1b015de694"),
    Vector(
      nonce: 1, plaintext: Array("scratch".utf8), ciphertext: "66b5cd9d309758",
      tag: "71b366139545bc9108285fff416f8828", mac: "63b17e9b56801b3d2900481a66de3fcf"),
    Vector(
      nonce: 0x0102_0304_0506_0708, plaintext: Array("abc".utf8), ciphertext: "653306",
      tag: "1e499dcc87895a2f1082717f811c1c1d", mac: "499a3abab2a32097440c765795e49616"),
    Vector(
      nonce: .max, plaintext: Array(0..<100),
      ciphertext: """
        0200655f83365f4eb1007336a9b6439dece7c65886b3f66e3373fe90049c3b82e1cf880e35e9ee297dfa0fed\
        36d3a5f0f1ad4def33e90d3d3578b7d57915631df89855a4adc8df87107fceb4656534d07fdb6568a6bcac4d\
        839efc3b193c0227554cb29c
        """, tag: "46709ba093b394903ac2011df2708597", mac: "98372af18f993c0114d95bfb14c2f5cf"),
  ]

  private func makeGCM(_ key: [UInt8] = Array(0..<32)) throws -> GCM {
    try key.withUnsafeBytes { try GCM(key: $0) }
  }

  private func makeGMAC(_ key: [UInt8] = Array(0..<32)) throws -> GMAC {
    try key.withUnsafeBytes { try GMAC(key: $0) }
  }

  private func mac(_ gmac: GMAC, _ nonce: UInt64, _ pieces: [UInt8]...) throws -> GMAC.Tag {
    try gmac.start(nonce: nonce)
    for piece in pieces { try piece.withUnsafeBytes { try gmac.update($0) } }
    return try gmac.finish()
  }

  /// Source: McGrew and Viega's GCM test cases 13 and 14, which NIST took over.
  @Test func agreesWithTheTableOfItsAuthors() throws {
    let key = [UInt8](repeating: 0, count: 32)
    let gcm = try makeGCM(key)
    var nothing: [UInt8] = []
    let first = try nothing.withUnsafeMutableBytes { try gcm.seal($0, nonce: 0) }
    #expect(hex(first.bytes) == "530f8afbc74536b9a963b4f1c4cb738b")
    #expect(try mac(try makeGMAC(key), 0).matches(first))
    var block = [UInt8](repeating: 0, count: 16)
    let second = try block.withUnsafeMutableBytes { try gcm.seal($0, nonce: 0) }
    #expect(hex(block) == "cea7403d4d606b6e074ec5d3baf39d18")
    #expect(hex(second.bytes) == "d0d1c8a799996bf0265b98b5d48ab919")
  }

  @Test(arguments: vectors)
  func sealingAndOpeningAgreeWithTheTable(_ vector: Vector) throws {
    let gcm = try makeGCM()
    var bytes = vector.plaintext
    let tag = try bytes.withUnsafeMutableBytes { try gcm.seal($0, nonce: vector.nonce) }
    #expect(hex(bytes) == vector.ciphertext)
    #expect(hex(tag.bytes) == vector.tag)
    let opened = try bytes.withUnsafeMutableBytes {
      try gcm.open($0, nonce: vector.nonce, tag: tag)
    }
    #expect(opened)
    #expect(bytes == vector.plaintext)
  }

  @Test(arguments: vectors)
  func gmacAgreesWithTheTableInOnePieceOrMore(_ vector: Vector) throws {
    let gmac = try makeGMAC()
    #expect(hex(try mac(gmac, vector.nonce, vector.plaintext).bytes) == vector.mac)
    let parts = (Array(vector.plaintext.prefix(7)), Array(vector.plaintext.dropFirst(7)))
    #expect(hex(try mac(gmac, vector.nonce, parts.0, parts.1).bytes) == vector.mac)
  }

  @Test func whatWasAlteredIsNotOpenedAndLeavesNoBytes() throws {
    let gcm = try makeGCM()
    let plaintext = patterned(100)
    var sealed = plaintext
    let tag = try sealed.withUnsafeMutableBytes { try gcm.seal($0, nonce: 5) }
    var wrongTag = tag
    wrongTag.low ^= 1
    for (index, nonce, tag) in [(0, 5, tag), (99, 5, tag), (nil, 6, tag), (nil, 5, wrongTag)]
      as [(Int?, UInt64, GMAC.Tag)]
    {
      var bytes = sealed
      if let index { bytes[index] ^= 1 }
      let opened = try bytes.withUnsafeMutableBytes { try gcm.open($0, nonce: nonce, tag: tag) }
      #expect(!opened)
      #expect(bytes == [UInt8](repeating: 0, count: 100))
    }
  }

  @Test func tagsOfOtherBytesOrNoncesDoNotMatch() throws {
    let gmac = try makeGMAC()
    let tag = try mac(gmac, 1, patterned(50))
    #expect(try mac(gmac, 1, patterned(50)).matches(tag))
    #expect(try !mac(gmac, 2, patterned(50)).matches(tag))
    #expect(try !mac(gmac, 1, patterned(49)).matches(tag))
  }
}

extension GMAC.Tag {
  fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self, Array.init) }
}

/// Under key 00 01 02 ...; computed with Python's cryptography (AESSIV). RFC 5297's own table has
/// keys of half the size.
@Suite struct SIVTests {
  private let key = Array(0..<64) as [UInt8]

  private func encrypt(_ plaintext: [UInt8], _ data: [UInt8]) throws -> [UInt8] {
    try key.withUnsafeBytes { try SIV.encrypt(plaintext, associatedData: data, key: $0) }
  }

  private func decrypt(_ ciphertext: [UInt8], _ data: [UInt8]) throws -> [UInt8]? {
    try key.withUnsafeBytes { try SIV.decrypt(ciphertext, associatedData: data, key: $0) }
  }

  @Test(arguments: [
    (
      Array("IMG_1.jpg".utf8), Array(0..<16) as [UInt8],
      "ebe495da5ed03dae52adc1c58a4930cdddea4c82a159bf3962"
    ),
    (
      Array("Zürich.heic".utf8), [UInt8](repeating: 0xFF, count: 16),
      "5859ab329054809290903ef026d5cf61dc3d2f18bf2b1beebf00f398"
    ),
    (Array("x".utf8), Array("y".utf8), "2549ae31190dee39c68c9efd7a21a0bb86"),
    ([], Array("y".utf8), "7e4e0c6d68028eee462914447cdd46eb"),
    (
      [UInt8](repeating: 0x61, count: 255), Array("photovault/1/link".utf8),
      """
      e9c11473aeb275ed46c98dd81f6e853f9ad6e54a731c52e1507b3cdeb18ccafa5ddfddf015fc149f2b399b06\
      c03108aaeb6d7300facbdffa4f635727197dd5cbafec1d40cf3fa67113ed066b0402eb5508bf6bc6130aab3b\
      d5634a533be638506652ff6786372b7303ac46f940db45294c469785fcbde4d593423102f4ec67840eb7bfb6\
      79f1bfad79d16143203dabf14ae33e8694a711d7c25dc8a971e2d7a7646a6aaaaa44f66a708b7b7e20559d58\
      0569a82d182bf9922c8a8cd2c0be23bb69f61e19c4f5888c97d0664018a1e47fbda3e2c023276347f02efcd8\
      68cf38c6d0f78dcde6808ac620b8c50810b255d824c9d2bc65a078507c414eb55b3bd5882009651bb2d068eb\
      03aa516ad6704f
      """
    ),
  ])
  func agreesWithTheTable(
    _ plaintext: [UInt8], _ data: [UInt8], _ ciphertext: String
  ) throws {
    #expect(hex(try encrypt(plaintext, data)) == ciphertext)
    #expect(try decrypt(hex(ciphertext), data) == plaintext)
  }

  @Test func everyAlteredBitIsRefused() throws {
    let data: [UInt8] = Array(0..<16)
    let ciphertext = try encrypt(Array("photo.jpg".utf8), data)
    for index in ciphertext.indices {
      for bit in 0..<8 {
        var altered = ciphertext
        altered[index] ^= 1 << bit
        #expect(try decrypt(altered, data) == nil)
      }
    }
    #expect(try decrypt(ciphertext, Array(1..<17)) == nil)
    for count in ciphertext.indices {
      #expect(try decrypt(Array(ciphertext.prefix(count)), data) == nil)
    }
    #expect(try decrypt(ciphertext + [0], data) == nil)
    #expect(try decrypt(ciphertext, data) == Array("photo.jpg".utf8))
  }
}
