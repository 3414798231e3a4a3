import Glibc

/// libFuzzer's way in. `PHOTOVAULT_FUZZ_TARGET` names the target. A promise that does not hold
/// ends the process, as libFuzzer wants it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let target else { return -1 }
  do { try target.run(Array(UnsafeBufferPointer(start: bytes, count: count))) } catch {
    print("\(target): \(error)")
    abort()
  }
  return 0
}

/// Writes the samples into the folder that `PHOTOVAULT_FUZZ_CORPUS` names, if it does.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(
  _ argumentCount: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?
) -> CInt {
  guard let folder = getenv("PHOTOVAULT_FUZZ_CORPUS"), let target else { return 0 }
  for (number, sample) in target.corpus.enumerated() {
    guard let file = fopen("\(String(cString: folder))/sample\(number)", "w") else { return 1 }
    fwrite(sample, 1, sample.count, file)
    fclose(file)
  }
  return 0
}

private let target = getenv("PHOTOVAULT_FUZZ_TARGET").flatMap {
  FuzzTarget(rawValue: String(cString: $0))
}
