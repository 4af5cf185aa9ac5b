"""Home, lists and settings that only one person sees."""
