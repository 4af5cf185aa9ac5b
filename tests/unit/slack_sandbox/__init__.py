"""Tests of the stand-in for Slack."""
