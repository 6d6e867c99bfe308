"""`python -m supervisor`: the same as the `mcp-supervisor` command."""

from supervisor.cli import main

if __name__ == "__main__":
    main()
