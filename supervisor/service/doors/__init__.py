"""The doors beside the one of the meta-tools: every server by itself, and all tools under names of ours."""
