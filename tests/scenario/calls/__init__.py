"""What people are asked about calls: by rules in code, and for several at once."""
