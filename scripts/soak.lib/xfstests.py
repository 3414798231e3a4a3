"""xfstests-dev: built from its sources. fsx and fsstress are parts of it."""
import soak

URL = "https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git"


def build():
    folder, commit = soak.source("xfstests", URL)
    soak.run("make", "-j2", cwd=folder, limit=1500)
    return folder, commit
