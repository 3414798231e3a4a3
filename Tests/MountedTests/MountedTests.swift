import Testing

/// The built program through a real mount. Each test has a vault, a daemon and folders of its own, so that
/// they can run beside one another.
@Suite struct MountedTests {}
