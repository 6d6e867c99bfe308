"""The programs that use us: where each keeps its servers, how it writes them, and how they come here and go back."""
