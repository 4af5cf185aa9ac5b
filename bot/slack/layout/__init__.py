"""The parts that cards and forms are made of: text, arguments, blocks."""
