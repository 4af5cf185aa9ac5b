"""The lists that one person sees alone: their Home, and the answers of the commands."""
