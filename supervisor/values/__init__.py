"""Values that teams and users give to a running daemon: checked, sealed, kept, shown."""
