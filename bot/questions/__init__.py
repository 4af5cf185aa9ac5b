"""Kinds of questions: from the interrupt, its form, its answer, and the way back."""
