// RuntimeLibraries
