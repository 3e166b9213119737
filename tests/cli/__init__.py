"""Commands, run in this process; a package, because every folder here has a conftest of its own."""
