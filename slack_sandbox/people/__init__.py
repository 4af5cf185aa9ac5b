"""Actions of people: write, click, fill in forms."""
