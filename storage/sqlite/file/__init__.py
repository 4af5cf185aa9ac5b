"""The database's file: who holds it, who may read it, and the threads that work on it."""
