"""The report page; a package, because every folder here has a conftest of its own."""
