"""What `doctor` looks at: facts gathered at once, and checks of them that touch nothing."""
