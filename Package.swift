// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

func target(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(
  _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [],
  resources: [Resource] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, exclude: exclude, resources: resources,
    swiftSettings: settings)
}

let package = Package(
  name: "photovault",
  products: [
    .executable(name: "photovault", targets: ["photovault"]),
    .library(name: "SecuredData", targets: ["SecuredData"]),
  ],
  targets: [
    // C: system libraries, and what Glibc's module hides.
    .systemLibrary(name: "CFUSE", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .target(name: "CLinux"),

    // From the ground up; a target imports only what it lists.
    target("Platform", ["CLinux"]),
    target("SecuredData", ["Platform", "COpenSSL"]),
    target("VaultStorage", ["SecuredData", "Platform"]),
    target("VaultFileSystem", ["VaultStorage", "SecuredData", "Platform"]),
    target("FUSESession", ["VaultFileSystem", "VaultStorage", "Platform", "CFUSE"]),
    target("RuntimeLibraries", ["Platform", "CLinux"]),
    target("SecretStore", ["SecuredData", "RuntimeLibraries", "Platform"]),
    target("SessionMonitor", ["RuntimeLibraries", "Platform"]),
    .executableTarget(
      name: "photovault",
      dependencies: [
        "FUSESession", "VaultFileSystem", "VaultStorage", "SecretStore", "SessionMonitor",
        "RuntimeLibraries", "SecuredData", "Platform",
      ],
      swiftSettings: settings,
      // All symbols are bound at the start: a call that binds one later saves the processor's vector
      // registers on the stack first, and whatever piece of a key a copy has left in them.
      linkerSettings: [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"])]),

    tests("PlatformTests", ["Platform", "CLinux"]),
    tests(
      "SecuredDataTests", ["SecuredData", "Platform"], exclude: ["generate-vectors.py"],
      resources: [.copy("Vectors")]),
    tests(
      "VaultStorageTests", ["VaultStorage", "SecuredData", "Platform", "Fuzzing"],
      resources: [.copy("Fixtures")]),
    tests(
      "VaultFileSystemTests", ["VaultFileSystem", "VaultStorage", "SecuredData", "Platform"]),
    tests(
      "SecretStoreTests", ["SecretStore", "SecuredData", "Platform"],
      resources: [.copy("account_item.py")]),
    tests("FUSESessionTests", ["FUSESession", "VaultFileSystem", "Platform", "CFUSE"]),
    tests("SessionMonitorTests", ["SessionMonitor"]),
    tests(
      "CommandLineTests", ["photovault", "RuntimeLibraries", "Platform", "Fuzzing"],
      resources: [.copy("Golden"), .copy("rncryptor.py"), .copy("terminal.py")]),
    // What reads bytes that others may have altered, for mutations and for libFuzzer.
    .target(
      name: "Fuzzing", dependencies: ["SecretStore", "VaultStorage", "SecuredData", "Platform"],
      path: "Tests/Fuzzing", swiftSettings: settings),
    tests("FuzzTests", ["Fuzzing"]),
    // The built program through a real mount.
    tests("MountedTests", ["photovault"], exclude: ["Workloads"]),
    // POSIX checks as plain functions, and the runs of them over each driver.
    .target(
      name: "Conformance",
      dependencies: ["VaultFileSystem", "VaultStorage", "SecretStore", "Platform", "CLinux"],
      path: "Tests/Conformance", swiftSettings: settings),
    tests("ConformanceTests", ["Conformance", "VaultStorage", "Platform", "photovault"]),
  ]
)

// For scripts/soak.d/fuzz, which links it with libFuzzer.
if Context.environment["PHOTOVAULT_FUZZERS"] != nil {
  package.products.append(.library(name: "Fuzzers", type: .static, targets: ["Fuzzing"]))
}
