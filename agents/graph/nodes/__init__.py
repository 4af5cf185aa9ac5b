"""Running a graph: its steps, its nodes, their interrupts, and breakpoints."""
