"""What servers write: journals in memory, files on the disk, pages of both."""
