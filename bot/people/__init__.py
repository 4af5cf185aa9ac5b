"""Who may decide, who asked, and whether anybody can decide at all."""
