import Platform
import SecuredData
import Testing

/// Against the tables of their specifications.
@Suite struct PrimitiveTests {
  struct MACVector: Sendable {
    let key: [UInt8]
    let text: [UInt8]
    let mac: String
  }

  /// Source: RFC 4231, test cases 1, 2, 3, 4, 6 and 7.
  static let hmacVectors = [
    MACVector(
      key: [UInt8](repeating: 0x0B, count: 20), text: Array("Hi There".utf8),
      mac: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    MACVector(
      key: Array("Jefe".utf8), text: Array("what do ya want for nothing?".utf8),
      mac: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    MACVector(
      key: [UInt8](repeating: 0xAA, count: 20), text: [UInt8](repeating: 0xDD, count: 50),
      mac: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    MACVector(
      key: Array(1...25), text: [UInt8](repeating: 0xCD, count: 50),
      mac: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    MACVector(
      key: [UInt8](repeating: 0xAA, count: 131),
      text: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      mac: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    MACVector(
      key: [UInt8](repeating: 0xAA, count: 131),
      text: Array(
        """
        This is a test using a larger than block-size key and a larger than block-size data. \
        The key needs to be hashed before being used by the HMAC algorithm.
        """.utf8),
      mac: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
  ]

  @Test(arguments: hmacVectors)
  func hmacAgreesWithRFC4231(_ vector: MACVector) throws {
    let mac = try vector.key.withUnsafeBytes { try HMACSHA256(key: $0) }
    for _ in 0..<2 {
      try vector.text.prefix(5).withUnsafeBytes { try mac.update($0) }
      let other = try mac.copy()
      for mac in [mac, other] {
        try vector.text.dropFirst(5).withUnsafeBytes { try mac.update($0) }
        #expect(hex(try mac.finish()) == vector.mac)
      }
      try mac.restart()
    }
  }

  struct KDFVector: Sendable {
    let input: [UInt8]
    let salt: [UInt8]
    let info: [UInt8]
    let output: String
  }

  /// Source: RFC 5869, appendix A.1 to A.3.
  static let hkdfVectors = [
    KDFVector(
      input: [UInt8](repeating: 0x0B, count: 22), salt: Array(0...12), info: Array(0xF0...0xF9),
      output: """
        3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865
        """),
    KDFVector(
      input: Array(0...0x4F), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF),
      output: """
        b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c6\
        5e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
        """),
    KDFVector(
      input: [UInt8](repeating: 0x0B, count: 22), salt: [], info: [],
      output: """
        8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8
        """),
  ]

  @Test(arguments: hkdfVectors)
  func hkdfAgreesWithRFC5869(_ vector: KDFVector) throws {
    var output = [UInt8](repeating: 0, count: vector.output.count / 2)
    try vector.input.withUnsafeBytes { input in
      try output.withUnsafeMutableBytes {
        try Derivation.hkdf(input: input, salt: vector.salt, info: vector.info, into: $0)
      }
    }
    #expect(hex(output) == vector.output)
  }

  /// Source: RFC 7914, section 12 (the one that needs 1 GiB is left out).
  @Test(arguments: [
    (
      "", "", 16, 1, 1,
      """
      77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442\
      fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906
      """
    ),
    (
      "password", "NaCl", 1024, 8, 16,
      """
      fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162\
      2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640
      """
    ),
    (
      "pleaseletmein", "SodiumChloride", 16384, 8, 1,
      """
      7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2\
      d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887
      """
    ),
  ])
  func scryptAgreesWithRFC7914(
    _ password: String, _ salt: String, _ n: UInt64, _ r: UInt64, _ p: UInt64, _ output: String
  ) throws {
    var key = [UInt8](repeating: 0, count: 64)
    try Array(password.utf8).withUnsafeBytes { password in
      try key.withUnsafeMutableBytes {
        try Derivation.scrypt(
          password: password, salt: Array(salt.utf8), n: n, r: r, p: p, into: $0)
      }
    }
    #expect(hex(key) == output)
  }

  /// Source: RFC 6070 (the one of 16,777,216 rounds is left out).
  @Test(arguments: [
    ("password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
    ("password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
    ("password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
    (
      "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096,
      "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"
    ),
    ("pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"),
  ])
  func pbkdf2AgreesWithRFC6070(
    _ password: String, _ salt: String, _ rounds: Int, _ output: String
  ) throws {
    var key = [UInt8](repeating: 0, count: output.count / 2)
    try Array(password.utf8).withUnsafeBytes { password in
      try key.withUnsafeMutableBytes {
        try Derivation.pbkdf2(
          password: password, salt: Array(salt.utf8), rounds: rounds, into: $0)
      }
    }
    #expect(hex(key) == output)
  }

  /// Source: FIPS 180-4's example.
  @Test func sha256AgreesWithItsExample() throws {
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    #expect(hex(try SHA256.hash(Array("abc".utf8))) == expected)
  }

  @Test func constantTimeEqualComparesAllBytesAndTheLength() {
    #expect(constantTimeEqual([], []))
    #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
    #expect(!constantTimeEqual([1, 2, 3], [0, 2, 3]))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
  }
}
